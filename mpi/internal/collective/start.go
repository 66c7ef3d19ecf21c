package collective

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/internal/vtime"
)

// ErrRequest is the error of a request that cannot be started.
var ErrRequest = errors.New("mpi: invalid request")

// Start starts a nonblocking call, which a goroutine executes. With Options.Check a call with
// invalid arguments is started, too, and Start returns their error.
func (c *Comm) Start(o *Op) (*Background, error) {
	o.form = nonblocking
	k, err := c.beginCall(o)
	if err != nil {
		return nil, err
	}
	b, refused := newBackground(), k.op.argErr
	k.background = b
	vtime.Go(func() {
		err := errNoReturn
		defer func() { // also if a function of the program calls runtime.Goexit
			c.endCall(k, err)
			b.completeCall(c.Engine, err)
		}()
		if err = k.runBlocking(); err != nil {
			err = c.Fail(k.op.Name(), k.op.RootText(), err)
		}
	})
	return b, refused
}

// Persistent is a call that is started repeatedly. Its messages have a tag of their own, so
// it may be started in any order among the other calls of its communicator.
type Persistent struct {
	call   *execution
	broken error // of an earlier start
}

// Init makes a persistent call.
func (c *Comm) Init(o *Op) (*Persistent, error) {
	o.form = persistent
	k, err := c.beginCall(o)
	if err != nil {
		return nil, err
	}
	if err = k.checkAgreement(); err != nil {
		c.endCall(k, err)
		return nil, err
	}
	k.tag |= persistentTag
	return &Persistent{call: k}, nil
}

// Start starts the call, which a goroutine executes. After a failed one there is no other start.
func (p *Persistent) Start() (*Background, error) {
	k, b := p.call, newBackground()
	if err := k.comm.Usable(); err != nil {
		return nil, err
	}
	if p.broken != nil {
		return nil, fmt.Errorf("%w: earlier start failed: %w", ErrRequest, p.broken)
	}
	k.background = b
	vtime.Go(func() {
		cause, err := errNoReturn, errNoReturn
		defer func() { // also if a function of the program calls runtime.Goexit
			if p.broken = cause; cause != nil { // visible after Wait, by which the program orders Start
				k.cancelReceives()
			}
			k.releaseBuffers()
			b.completeCall(k.comm.Engine, err)
		}()
		if cause = k.executeAlgorithm(); cause == nil {
			err = nil
		} else {
			err = k.comm.Fail(k.op.Name(), k.op.RootText(), cause)
		}
	})
	return b, nil
}

// Free ends the call. It is not in progress.
func (p *Persistent) Free() { p.call.comm.endCall(p.call, p.broken) }
