package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// describeMessage describes a message, a receive or a send without a match.
func (j *job) describeMessage(e match.Envelope, from, to int, bytes int) deadlock.Message {
	m := deadlock.Message{From: from, To: to, Tag: int(e.Tag), Bytes: int64(bytes)}
	c := j.comms.get(e.Context &^ 1)
	switch {
	case c == nil:
		m.Comm = fmt.Sprintf("unknown communicator %d", e.Context&^1)
	case e.Context&1 != 0:
		m.Comm, m.Call = c.Name(), uint32(e.Tag)&maxSeq
	default:
		m.Comm = c.Name()
		m.Bytes = max(0, m.Bytes-int64(j.checkOverhead()))
	}
	return m
}

// isWakeMessage reports whether a message only wakes a rank that waits in shared memory, whose
// wait describes itself.
func isWakeMessage(e match.Envelope) bool { return e.Context&1 != 0 && e.Tag == wakeTag }

// addUnmatched adds the unexpected messages, the posted receives and the sends without a match
// to the state.
func (j *job) addUnmatched(core *protocol.Core, s *deadlock.State) {
	add := func(list *[]deadlock.Message, left *int, e match.Envelope, from, to, bytes int, held bool) bool {
		if isWakeMessage(e) {
			return true
		}
		m := j.describeMessage(e, from, to, bytes)
		if m.Held = held; !deadlock.AddMessage(list, m) {
			*left++
		}
		return *left < deadlock.MaxLeft
	}
	core.EachReceive(func(r *protocol.Request) bool {
		return add(&s.Receives, &s.Left.Receives, r.Envelope, int(r.Envelope.Source), deadlock.Any, len(r.Buf), false)
	})
	core.EachMessage(func(m *protocol.Message, announced bool) bool {
		return add(&s.Messages, &s.Left.Messages, m.Envelope, int(m.Envelope.Source), deadlock.Any, int(m.Length), announced)
	})
	core.EachSend(func(r *protocol.Request) bool {
		return add(&s.Sends, &s.Left.Sends, r.Envelope, deadlock.Any, r.Dest, len(r.Buf), r.Stage() == protocol.Unsent)
	})
}

// describeLastCall describes the last call of a rank.
func (j *job) describeLastCall(send bool, peer int, e match.Envelope) string {
	c := j.comms.get(e.Context &^ 1)
	switch {
	case c == nil:
		return ""
	case e.Context&1 != 0:
		if at, ok := c.lastCollective(); ok {
			return at.String()
		}
		return "a collective call"
	case send:
		return fmt.Sprintf("Send(dest %s, tag %d)", c.base.DescribeRank(int32(peer)), e.Tag)
	}
	return fmt.Sprintf("Recv(source %s, tag %s)", c.base.DescribeRank(e.Source), comm.DescribeNumber(int(e.Tag)))
}
