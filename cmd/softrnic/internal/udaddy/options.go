package udaddy

import (
	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
)

// Options are the original's (see udaddy(1)), and where to run. The original has no
// option for the Port.
type Options struct {
	cmtool.Options
}

// test names the test to the peer.
const test = "udaddy"

// Defaults are those of the original.
func Defaults() Options { return Options{cmtool.Defaults(7174)} }

// check refuses what cannot be. How long a datagram may be, the device says.
func (o *Options) check() error {
	if err := o.Check("port"); err != nil {
		return err
	}
	if o.Size < 0 {
		return rdmacm.Refuse("-S", "messages of %d bytes cannot be", o.Size)
	}
	return o.Fits(o.receives(), o.room())
}

// spare is how many receives there are beside those for the peer's datagrams,
// for strangers to use up.
const spare = 16

// receives is how many receives there are.
func (o *Options) receives() int {
	if o.Count == 0 {
		return 0
	}
	return o.Count + spare
}

// grhLen is how much room a receive has in front of a datagram.
const grhLen = 40

// room is the length of a receive.
func (o *Options) room() int { return grhLen + o.Size }
