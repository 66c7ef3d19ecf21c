package pt2pt

import (
	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/onesided"
)

// StartCall starts a nonblocking collective call.
func (c *Comm) StartCall(calls *collective.Comm, o *collective.Op) (*Request, error) {
	b, err := calls.Start(o)
	if err != nil {
		return nil, c.Fail(o.Name(), o.RootText(), err)
	}
	return &Request{comm: c, op: o.Name(), background: b}, nil
}

// InitCall makes a persistent collective call.
func (c *Comm) InitCall(calls *collective.Comm, o *collective.Op) (*Request, error) {
	p, err := calls.Init(o)
	if err != nil {
		return nil, c.Fail(o.Name(), o.RootText(), err)
	}
	start := func(r *Request) (err error) {
		if r.background, err = p.Start(); err != nil {
			return c.Fail(o.Name(), o.RootText(), err)
		}
		return nil
	}
	return &Request{comm: c, op: o.Name(), persistent: true, start: start, free: p.Free}, nil
}

// StartOperation starts a one-sided operation, whose name is op. Its error is one of the arguments,
// which the request returns, too.
func (c *Comm) StartOperation(op string, w *onesided.Window, o *onesided.Operation, target int) (*Request, error) {
	r := &Request{comm: c, op: op, rmaResult: &onesided.Result{Target: target, At: o.At}}
	if err := w.StartOperation(o, target, r.rmaResult); err != nil {
		return r, r.failBeforeStart(onesided.DescribeTarget(target, o.At), err)
	}
	return r, nil
}
