package udaddy

import (
	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
)

// Options are the original's (see udaddy(1)), and where to run. The original has no
// option for the Port.
type Options struct {
	cmtool.Options
}

// test names the test to the peer.
const test = "udaddy"

// Defaults returns the defaults of the original.
func Defaults() Options { return Options{cmtool.Defaults(7174)} }

// check returns an error for an invalid option.
func (o *Options) check() error {
	if err := o.Check("port"); err != nil {
		return err
	}
	if o.Size < 0 {
		return option.Errorf("-S", "messages of %d bytes cannot be", o.Size)
	}
	return o.Fits(o.receives(), o.recvLen())
}

// spare is the number of receives beyond the peer's datagrams, for datagrams of other senders.
const spare = 16

// receives returns the number of receives.
func (o *Options) receives() int {
	if o.Count == 0 {
		return 0
	}
	return o.Count + spare
}

// grhLen is the length of the GRH before a datagram.
const grhLen = 40

// recvLen returns the length of a receive buffer.
func (o *Options) recvLen() int { return grhLen + o.Size }
