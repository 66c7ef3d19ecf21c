package pt2pt

import (
	"errors"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Mode is the communication mode of a send (MPI 4.1, 3.4).
type Mode uint8

// Communication modes. A send in ready mode is a standard one.
const (
	Standard    Mode = iota
	Synchronous      // done after the message has matched its receive
	Buffered         // the message is copied, and its buffer may be reused at once
)

// requests are the requests of blocking calls.
var requests = sync.Pool{New: func() any { return &Request{} }}

// waitAndRecycle waits for the request of a blocking call and returns it to the pool.
func waitAndRecycle(r *Request) (Status, error) {
	s, err := r.Wait()
	*r = Request{}
	requests.Put(r)
	return s, err
}

// Send sends a message and returns when the send is done.
func (c *Comm) Send(b datatype.Buffer, dest, tag int, mode Mode) error {
	r := requests.Get().(*Request)
	if err := c.startSend(r, b, dest, tag, mode); err != nil {
		return err
	}
	_, err := waitAndRecycle(r)
	return err
}

// Isend starts a send. Its error is one of the arguments, which the request returns, too.
func (c *Comm) Isend(b datatype.Buffer, dest, tag int, mode Mode) (*Request, error) {
	r := &Request{}
	return r, c.startSend(r, b, dest, tag, mode)
}

// startSend starts r as a send.
func (c *Comm) startSend(r *Request, b datatype.Buffer, dest, tag int, mode Mode) error {
	r.comm, r.op = c, opSend
	if err := c.checkArgs(b, dest, tag, false); err != nil {
		return r.failBeforeStart(describeDest(dest, tag), err)
	}
	r.p.Envelope = match.Envelope{Context: c.ContextID, Tag: int32(tag)}
	if dest == comm.ProcNull {
		r.neverStarted = true
		return nil
	}
	r.p.Dest, r.p.Buf, r.p.Sync = c.WorldRank(dest), c.job.packMessage(b, mode == Buffered), mode == Synchronous
	r.p.Signature = b.MessageSignature()
	if err := c.Engine.Send(&r.p); err != nil {
		return r.failBeforeStart(r.describePeer(), err)
	}
	return nil
}

// Bsend sends a copy of a message and does not wait for its receive. Job.WaitBuffered waits for it.
func (c *Comm) Bsend(b datatype.Buffer, dest, tag int) error {
	r, err := c.Isend(b, dest, tag, Buffered)
	if err != nil {
		return err
	}
	_, done, err := r.Test()
	if !done {
		c.job.keepBuffered(r)
	}
	return err
}

// keepBuffered keeps a buffered send until it is done.
func (j *Job) keepBuffered(r *Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	kept := j.buffered[:0]
	for _, old := range j.buffered {
		if !old.comm.Engine.Test(old) {
			kept = append(kept, old)
		}
	}
	j.buffered = append(kept, r)
}

// WaitBuffered waits for the sends of Bsend and joins their errors.
func (j *Job) WaitBuffered() (errs error) {
	j.mu.Lock()
	buffered := j.buffered
	j.mu.Unlock()
	for _, r := range buffered {
		_, err := r.Wait()
		errs = errors.Join(errs, err)
	}
	return errs
}
