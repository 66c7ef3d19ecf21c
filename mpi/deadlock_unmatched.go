package mpi

import (
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// addUnmatched adds the unexpected messages, the posted receives and the sends without a match
// to the state.
func (j *job) addUnmatched(core *protocol.Core, s *deadlock.State) {
	add := func(list *[]deadlock.Message, left *int, e match.Envelope, from, to, bytes int, held bool) bool {
		m, ok := j.calls.DescribeMessage(e, from, to, bytes)
		if !ok {
			return true
		}
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
