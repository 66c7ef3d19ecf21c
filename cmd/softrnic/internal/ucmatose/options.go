package ucmatose

import (
	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
)

// Options are the original's (see ucmatose(1)), and where to run. The Port is -p.
type Options struct {
	cmtool.Options
	PortSpace  cm.PortSpace       // -P: cm.TCP or cm.IB
	AckTimeout rdmacm.TimeoutCode // -a: of our queue pairs
}

// test names the test to the peer.
const test = "ucmatose"

// Defaults returns the defaults of the original.
func Defaults() Options {
	return Options{Options: cmtool.Defaults(7471), PortSpace: cm.TCP}
}

// check returns an error for an invalid option.
func (o *Options) check() error {
	if err := o.Check("-p"); err != nil {
		return err
	}
	switch {
	case o.PortSpace != cm.TCP && o.PortSpace != cm.IB:
		return option.Errorf("-P", "%v is neither tcp nor ib", o.PortSpace)
	case o.Size < 0 || o.Size > cmtool.MaxMemory:
		return option.Errorf("-S", "messages of %d bytes cannot be; give 0 to %d", o.Size, cmtool.MaxMemory)
	}
	return o.Fits(o.Count, o.Size)
}
