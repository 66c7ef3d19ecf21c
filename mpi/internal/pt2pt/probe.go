package pt2pt

import (
	"context"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Message is a message that a probe has matched: if the probe took it, no other receive matches it.
type Message struct {
	comm *Comm
	m    *protocol.Message // nil once it is received
	null bool              // of comm.ProcNull
}

// IsNull reports whether there is no message (MPI_MESSAGE_NULL).
func (m *Message) IsNull() bool { return m == nil || m.comm == nil }

// Irecv starts the receive of the message, which is not null.
func (m *Message) Irecv(b datatype.Buffer) (*Request, error) {
	r := &Request{comm: m.comm, op: opReceive}
	if err := b.Check(true); err != nil {
		return r, r.failBeforeStart("", err)
	}
	if m.null {
		r.neverStarted = true
		return r, nil
	}
	if m.m == nil {
		return r, r.failBeforeStart("message received before", collective.ErrRequest)
	}
	r.prepareReceive(b)
	r.p.Envelope = m.m.Envelope
	m.comm.Engine.Do(func(core *protocol.Core) { core.ReceiveMessage(&r.p, m.m) })
	m.m = nil
	return r, nil
}

// IrecvNull returns the request and the error of the receive of a null message.
func (c *Comm) IrecvNull() (*Request, error) {
	r := &Request{comm: c, op: opReceive}
	return r, r.failBeforeStart("message", ErrNullRequest)
}

// probe is the condition that a message matches a probe.
type probe struct {
	core     *protocol.Core
	envelope match.Envelope
	take     bool
	found    *protocol.Message
	err      error // no message can match any more: the ranks are lost
	status   Status
	comm     *Comm
}

// Ready implements engine.Waitable.
func (s *probe) Ready() bool {
	if s.found != nil || s.err != nil {
		return true
	}
	m := s.core.Probe(s.envelope, s.take)
	if m == nil {
		s.err = s.core.SourceError(s.envelope, s.comm.WorldRanks)
		return s.err != nil
	}
	s.found = m
	s.status = Status{Source: s.comm.LocalRank(int(m.Envelope.Source)), Tag: int(m.Envelope.Tag), Bytes: int(m.Length) - s.comm.job.signatureSize()}
	return true
}

// newProbe validates the arguments of a probe.
func (c *Comm) newProbe(source, tag int, take bool) (*probe, error) {
	if err := c.checkArgs(datatype.Buffer{}, source, tag, true); err != nil {
		return nil, c.Fail("probe", describeSource(source, tag), err)
	}
	return &probe{core: c.Engine.Core(), envelope: c.matchEnvelope(source, tag), take: take, comm: c}, nil
}

// result returns the message that a probe has found, or its error.
func (s *probe) result() (*Message, Status, error) {
	if s.err != nil {
		return nil, Status{}, s.comm.Fail("probe", "", s.err)
	}
	return &Message{comm: s.comm, m: s.found}, s.status, nil
}

// Probe waits for a message that a receive would match. With take, no other receive matches the
// message afterwards.
func (c *Comm) Probe(source, tag int, take bool) (*Message, Status, error) {
	s, err := c.newProbe(source, tag, take)
	switch {
	case err != nil:
		return nil, Status{}, err
	case source == comm.ProcNull:
		return &Message{comm: c, null: true}, nullStatus, nil
	}
	if err := c.Engine.Wait(context.Background(), s); err != nil {
		return nil, Status{}, c.Fail("probe", "", err)
	}
	return s.result()
}

// Iprobe is Probe that does not wait. It reports whether there is a message.
func (c *Comm) Iprobe(source, tag int, take bool) (*Message, Status, bool, error) {
	s, err := c.newProbe(source, tag, take)
	switch {
	case err != nil:
		return nil, Status{}, false, err
	case source == comm.ProcNull:
		return &Message{comm: c, null: true}, nullStatus, true, nil
	case !c.Engine.Test(s):
		return nil, Status{}, false, nil
	}
	m, found, err := s.result()
	return m, found, err == nil, err
}
