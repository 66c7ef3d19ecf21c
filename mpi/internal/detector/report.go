package detector

import (
	"fmt"
	"os"

	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Calls describe the collective calls and the messages of a rank, and compare its calls with
// those of other ranks. The detector calls them with the engine's lock held.
type Calls interface {
	// HandlePacket handles a deadlock.PacketMismatch, a PacketCallEnded or a PacketProbe with
	// a payload. An error is a protocol violation.
	HandlePacket(from int, h *envelope.Header, payload []byte) error

	// DescribeLastCall describes the last send or receive of the rank.
	DescribeLastCall(send bool, peer int, e match.Envelope) string

	// LastCalls returns the last collective calls, of at most max communicators.
	LastCalls(max int) []deadlock.Collective

	// DescribeMessage describes a message, a receive or a send without a match. It reports
	// whether reports list it.
	DescribeMessage(e match.Envelope, from, to, bytes int) (m deadlock.Message, listed bool)
}

// states describes the state of the rank.
type states struct {
	*polls
	*losses
	calls Calls
}

// describeRank returns the state of this rank.
func (x *states) describeRank(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp, stacks map[uint64][]uintptr) *deadlock.State {
	now := vtime.Now()
	x.updateLastCall(last, now)
	s := &deadlock.State{Rank: x.waits.engine.Rank(), PID: os.Getpid(), Quiet: now.Sub(x.lastCallAt).Milliseconds()}
	s.Host, _ = os.Hostname()
	described := map[*waitState]bool{}
	for _, w := range waiting {
		describer, ok := w.Target.(deadlock.Describer)
		switch {
		case !ok:
			continue
		case len(s.Calls) == deadlock.MaxListed:
			s.MoreCalls++
			continue
		}
		c := describer.DescribeWait()
		c.At = callerLine(stacks[w.ID])
		if p := x.polledCall(w.Target); p != nil {
			x.markPolled(&c, p)
			described[p] = true
		}
		if state := x.all[waitKey(w)]; state != nil {
			c.Millis = now.Sub(state.since).Milliseconds()
		}
		s.Calls = append(s.Calls, c)
	}
	s.Calls = append(s.Calls, x.describePolls(now, described)...)
	s.Last = x.calls.DescribeLastCall(last.Send, last.Peer, last.Envelope)
	if last.Calls == 0 {
		s.Last = ""
	}
	s.Collectives = x.calls.LastCalls(deadlock.MaxListed)
	for _, l := range x.lost {
		s.Lost = append(s.Lost, fmt.Sprintf("rank %d: %s", l.rank, l.reason))
	}
	x.addUnmatched(core, s)
	return s
}

// addUnmatched adds the unexpected messages, the posted receives and the sends without a match
// to the state.
func (x *states) addUnmatched(core *protocol.Core, s *deadlock.State) {
	add := func(list *[]deadlock.Message, left *int, e match.Envelope, from, to, bytes int, held bool) bool {
		m, ok := x.calls.DescribeMessage(e, from, to, bytes)
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
