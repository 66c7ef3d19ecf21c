package mpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// matchEnvelope returns the envelope that a receive of (source, tag) on c matches.
func (c *Comm) matchEnvelope(source, tag int) match.Envelope {
	if source >= 0 {
		source = c.base.WorldRank(source)
	}
	return match.Envelope{Context: c.base.ContextID, Source: int32(source), Tag: int32(tag)}
}

// prepareReceive makes r a receive into b. A buffer that is not contiguous is received packed.
func (r *Request) prepareReceive(c *Comm, b datatype.Buffer) {
	r.comm, r.op = c, "receive"
	mem, ok := b.Contiguous()
	if !ok || c.world.o.Check {
		mem = make([]byte, c.world.checkOverhead()+b.Size())
		r.buf, r.packed = b, mem
	}
	r.p.Buf, r.p.Signature = mem, b.MessageSignature()
}

// startReceive starts r as a receive.
func (c *Comm) startReceive(r *Request, buf Buffer, source, tag int) error {
	b := buf.data
	r.comm, r.op = c, "receive"
	if err := c.checkMessageArgs(b, source, tag, true); err != nil {
		return r.failBeforeStart(fmt.Sprintf("from %d, tag %d", source, tag), err)
	}
	if source == ProcNull {
		r.neverStarted = true
		return nil
	}
	r.prepareReceive(c, b)
	r.p.Envelope, r.p.Sources = c.matchEnvelope(source, tag), c.base.WorldRanks
	if err := c.base.Engine.Receive(&r.p); err != nil {
		return r.failBeforeStart(r.describePeer(), err)
	}
	return nil
}

// Recv receives a message from source, or AnySource, with tag, or AnyTag (MPI_Recv). A message
// longer than b is truncated, and the error is ErrTruncated.
func (c *Comm) Recv(b Buffer, source, tag int) (Status, error) {
	r := requests.Get().(*Request)
	if err := c.startReceive(r, b, source, tag); err != nil {
		return Status{}, err
	}
	return waitAndRecycle(r)
}

// RecvContext is Recv that ends when ctx ends; a nil ctx never ends. When it ends early no
// message has been received.
func (c *Comm) RecvContext(ctx context.Context, b Buffer, source, tag int) (Status, error) {
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

// Irecv starts a Recv (MPI_Irecv).
func (c *Comm) Irecv(b Buffer, source, tag int) (*Request, error) {
	r := &Request{}
	return r, c.startReceive(r, b, source, tag)
}

// Sendrecv sends one message and receives another concurrently (MPI_Sendrecv).
func (c *Comm) Sendrecv(send Buffer, dest, sendTag int, recv Buffer, source, recvTag int) (Status, error) {
	if err := c.checkMessageArgs(send.data, dest, sendTag, false); err != nil { // before the receive matches a message
		return Status{}, c.fail("send", fmt.Sprintf("to %d, tag %d", dest, sendTag), err)
	}
	in := requests.Get().(*Request)
	if err := c.startReceive(in, recv, source, recvTag); err != nil {
		return Status{}, err
	}
	if err := c.Send(send, dest, sendTag); err != nil {
		in.Cancel()
		return Status{}, err
	}
	return waitAndRecycle(in)
}

// SendrecvReplace is Sendrecv with one buffer for both (MPI_Sendrecv_replace).
func (c *Comm) SendrecvReplace(b Buffer, dest, sendTag, source, recvTag int) (Status, error) {
	if err := c.checkMessageArgs(b.data, source, recvTag, true); err != nil {
		return Status{}, c.fail("receive", fmt.Sprintf("from %d, tag %d", source, recvTag), err)
	}
	out, err := c.Ibsend(b, dest, sendTag)
	if err != nil {
		return Status{}, err
	}
	s, err := c.Recv(b, source, recvTag)
	_, sent := out.Wait()
	return s, cmp.Or(err, sent)
}

// Probe waits for a message that a receive would match and leaves it in the queue (MPI_Probe).
func (c *Comm) Probe(source, tag int) (Status, error) {
	_, s, err := c.waitProbe(source, tag, false)
	return s, err
}

// Iprobe reports whether there is a message that a receive would match (MPI_Iprobe).
func (c *Comm) Iprobe(source, tag int) (Status, bool, error) {
	_, s, ok, err := c.testProbe(source, tag, false)
	return s, ok, err
}

// Message is a message that Mprobe has matched: no other receive matches it.
type Message struct {
	comm *Comm
	m    *protocol.Message
	null bool
}

// Mprobe is Probe that removes the message from matching (MPI_Mprobe).
func (c *Comm) Mprobe(source, tag int) (*Message, Status, error) {
	return c.waitProbe(source, tag, true)
}

// Improbe is Iprobe that removes the message from matching (MPI_Improbe).
func (c *Comm) Improbe(source, tag int) (*Message, Status, bool, error) {
	return c.testProbe(source, tag, true)
}

// Recv receives the message (MPI_Mrecv). It returns an ErrRequest if m is nil
// (MPI_MESSAGE_NULL) or was received before.
func (m *Message) Recv(b Buffer) (Status, error) {
	r, err := m.Irecv(b)
	if err != nil {
		return Status{}, err
	}
	return r.Wait()
}

// Irecv starts a Recv (MPI_Imrecv).
func (m *Message) Irecv(b Buffer) (*Request, error) {
	if m == nil || m.comm.isNull() {
		r := &Request{op: "receive"}
		return r, r.failBeforeStart("message", errNullRequest)
	}
	r := &Request{comm: m.comm, op: "receive"}
	if err := b.data.Check(true); err != nil {
		return r, r.failBeforeStart("", err)
	}
	if m.null {
		r.neverStarted = true
		return r, nil
	}
	if m.m == nil {
		return r, r.failBeforeStart("message received before", ErrRequest)
	}
	r.prepareReceive(m.comm, b.data)
	r.p.Envelope = m.m.Envelope
	m.comm.base.Engine.Do(func(core *protocol.Core) { core.ReceiveMessage(&r.p, m.m) })
	m.m = nil
	return r, nil
}

// probeWait is the condition that a message matches a probe.
type probeWait struct {
	core     *protocol.Core
	envelope match.Envelope
	take     bool
	found    *protocol.Message
	err      error // no message can match any more: the ranks are lost
	status   Status
	comm     *Comm
}

// Ready implements engine.Waitable.
func (s *probeWait) Ready() bool {
	if s.found != nil || s.err != nil {
		return true
	}
	m := s.core.Probe(s.envelope, s.take)
	if m == nil {
		s.err = s.core.SourceError(s.envelope, s.comm.base.WorldRanks)
		return s.err != nil
	}
	s.found = m
	s.status = Status{Source: s.comm.base.LocalRank(int(m.Envelope.Source)), Tag: int(m.Envelope.Tag), Bytes: int(m.Length) - s.comm.world.checkOverhead()}
	return true
}

// newProbeWait validates the arguments of a probe.
func (c *Comm) newProbeWait(source, tag int, take bool) (*probeWait, error) {
	if err := c.checkMessageArgs(datatype.Buffer{}, source, tag, true); err != nil {
		return nil, c.fail("probe", fmt.Sprintf("from %d, tag %d", source, tag), err)
	}
	return &probeWait{core: c.base.Engine.Core(), envelope: c.matchEnvelope(source, tag), take: take, comm: c}, nil
}

// waitProbe implements Probe and Mprobe.
func (c *Comm) waitProbe(source, tag int, take bool) (*Message, Status, error) {
	s, err := c.newProbeWait(source, tag, take)
	switch {
	case err != nil:
		return nil, Status{}, err
	case source == ProcNull:
		return &Message{comm: c, null: true}, Status{Source: ProcNull, Tag: AnyTag}, nil
	}
	if err := c.base.Engine.Wait(context.Background(), s); err != nil {
		return nil, Status{}, c.fail("probe", "", err)
	}
	if s.err != nil {
		return nil, Status{}, c.fail("probe", "", s.err)
	}
	return &Message{comm: c, m: s.found}, s.status, nil
}

// testProbe implements Iprobe and Improbe.
func (c *Comm) testProbe(source, tag int, take bool) (*Message, Status, bool, error) {
	s, err := c.newProbeWait(source, tag, take)
	switch {
	case err != nil:
		return nil, Status{}, false, err
	case source == ProcNull:
		return &Message{comm: c, null: true}, Status{Source: ProcNull, Tag: AnyTag}, true, nil
	}
	if !c.base.Engine.Test(s) {
		return nil, Status{}, false, nil
	}
	if s.err != nil {
		return nil, Status{}, false, c.fail("probe", "", s.err)
	}
	return &Message{comm: c, m: s.found}, s.status, true, nil
}

// checkOverhead returns the bytes of a message before its elements: with Options.Check the
// signature of its datatype.
func (j *job) checkOverhead() int {
	if j.o.Check {
		return datatype.SignatureSize
	}
	return 0
}

// unpackMessage unpacks a received message into b. With Options.Check it first compares the
// signatures of the datatypes.
func (c *Comm) unpackMessage(b datatype.Buffer, message []byte) error {
	if !c.world.o.Check || len(message) == 0 {
		b.Unpack(message)
		return nil
	}
	err := b.UnpackSigned(message)
	if errors.Is(err, datatype.ErrUnsigned) {
		return fmt.Errorf("%w: message of %d bytes without type signature; set Options.Check at all ranks", ErrMismatch, len(message))
	}
	return err
}
