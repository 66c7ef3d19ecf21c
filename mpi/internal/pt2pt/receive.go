package pt2pt

import (
	"cmp"
	"context"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// matchEnvelope returns the envelope that a receive of (source, tag) on c matches.
func (c *Comm) matchEnvelope(source, tag int) match.Envelope {
	if source >= 0 {
		source = c.WorldRank(source)
	}
	return match.Envelope{Context: c.ContextID, Source: int32(source), Tag: int32(tag)}
}

// prepareReceive makes r a receive into b. A buffer that is not contiguous is received packed.
func (r *Request) prepareReceive(b datatype.Buffer) {
	mem, packed := r.comm.job.receiveMemory(b)
	if packed {
		r.buf, r.packed = b, mem
	}
	r.p.Buf, r.p.Signature = mem, b.MessageSignature()
}

// startReceive starts r as a receive.
func (c *Comm) startReceive(r *Request, b datatype.Buffer, source, tag int) error {
	r.comm, r.op = c, opReceive
	if err := c.checkArgs(b, source, tag, true); err != nil {
		return r.failBeforeStart(describeSource(source, tag), err)
	}
	if source == comm.ProcNull {
		r.neverStarted = true
		return nil
	}
	r.prepareReceive(b)
	r.p.Envelope, r.p.Sources = c.matchEnvelope(source, tag), c.WorldRanks
	if err := c.Engine.Receive(&r.p); err != nil {
		return r.failBeforeStart(r.describePeer(), err)
	}
	return nil
}

// Recv receives a message.
func (c *Comm) Recv(b datatype.Buffer, source, tag int) (Status, error) {
	r := requests.Get().(*Request)
	if err := c.startReceive(r, b, source, tag); err != nil {
		return Status{}, err
	}
	return waitAndRecycle(r)
}

// RecvContext is Recv that ends when ctx ends, unless a message has matched.
func (c *Comm) RecvContext(ctx context.Context, b datatype.Buffer, source, tag int) (Status, error) {
	r, err := c.Irecv(b, source, tag)
	if err != nil {
		return Status{}, err
	}
	if ctx == nil {
		ctx = context.Background()
	}
	s, err := r.WaitContext(ctx)
	if ctx.Err() != nil && !r.neverStarted && !r.Cancel() {
		return r.Wait() // the message has matched and arrives
	}
	return s, err
}

// Irecv starts a receive. Its error is one of the arguments, which the request returns, too.
func (c *Comm) Irecv(b datatype.Buffer, source, tag int) (*Request, error) {
	r := &Request{}
	return r, c.startReceive(r, b, source, tag)
}

// Sendrecv sends one message and receives another concurrently.
func (c *Comm) Sendrecv(send datatype.Buffer, dest, sendTag int, recv datatype.Buffer, source, recvTag int) (Status, error) {
	if err := c.checkArgs(send, dest, sendTag, false); err != nil { // before the receive matches a message
		return Status{}, c.Fail(opSend, describeDest(dest, sendTag), err)
	}
	in := requests.Get().(*Request)
	if err := c.startReceive(in, recv, source, recvTag); err != nil {
		return Status{}, err
	}
	if err := c.Send(send, dest, sendTag, Standard); err != nil {
		in.Cancel()
		return Status{}, err
	}
	return waitAndRecycle(in)
}

// SendrecvReplace is Sendrecv with one buffer for both.
func (c *Comm) SendrecvReplace(b datatype.Buffer, dest, sendTag, source, recvTag int) (Status, error) {
	if err := c.checkArgs(b, source, recvTag, true); err != nil {
		return Status{}, c.Fail(opReceive, describeSource(source, recvTag), err)
	}
	out, err := c.Isend(b, dest, sendTag, Buffered)
	if err != nil {
		return Status{}, err
	}
	s, err := c.Recv(b, source, recvTag)
	_, sent := out.Wait()
	return s, cmp.Or(err, sent)
}
