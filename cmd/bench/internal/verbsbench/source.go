package verbsbench

import (
	"context"
	"errors"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/verbs"
)

// creditTimeout is the time without credits after which the source declares the units in flight
// lost.
const creditTimeout = 20 * time.Millisecond

const (
	postsPerClockRead   = 8   // posts between two readings of the clock
	pollsPerCreditCheck = 256 // empty polls between two checks of creditTimeout
)

// roundEnd is the information that source and sink exchange at the end of a round.
type roundEnd struct {
	Units    uint64 // posted, or received
	Messages int64  // completely posted, or completely received
	Failed   bool   // the queue pair failed
}

// A source is the sending side of a stream, or for reads the requester. Its counts are units of
// the current round.
type source struct {
	*rig
	*streamPlan
	wrs    []verbs.SendWR
	sges   []verbs.SGE
	round  uint64
	posted uint64
	done   uint64 // completed units
	lost   uint64 // units declared lost (UC, UD)
	base   uint64 // units that the sink received in earlier rounds

	// State of declareLost.
	emptyPolls     int
	lastCredits    uint64    // last known credits
	lastCreditTime time.Time // time of their last change
}

func openSource(ctx context.Context, e *side, p *streamPlan) (runner, error) {
	r, err := openRig(ctx, e, rigOptions{kind: p.kind, qps: 1, limits: p.qpCap(), memory: p.slots * p.Size})
	if err != nil {
		return nil, err
	}
	s := &source{rig: r, streamPlan: p, wrs: make([]verbs.SendWR, p.List), sges: make([]verbs.SGE, p.List)}
	p.limitWindow(e.path.Bytes(), int(r.remote.QPs[0].RecvBuffer))
	for i := range s.wrs {
		s.wrs[i] = r.newSendWR(s.sges[i:], 0, 0, 0)
		if !s.kind.isAcked() {
			s.wrs[i].Opcode = s.kind.withImm
		}
	}
	if !s.kind.isFetch() {
		copy(r.payloadBytes(), r.payloadPattern(len(r.payloadBytes())))
	}
	return s, nil
}

func (s *source) runRound(ctx context.Context, r request) (reply, error) {
	if s.kind.isFetch() {
		clear(s.payloadBytes())
	}
	if err := proc.Barrier(ctx, s.Worker); err != nil {
		return reply{}, err
	}
	start := time.Now()
	err := s.postUntil(ctx, start.Add(r.For))
	f := Flow{Elapsed: time.Since(start)}
	var failed *verbs.CompletionError
	if errors.As(err, &failed) {
		f.Failure = failed.Error()
	} else if err != nil {
		return reply{}, err
	}
	s.round++
	if err := s.counter.writeValue(s.round); err != nil {
		return reply{}, err
	}
	mine := roundEnd{s.posted, int64(s.posted) / int64(s.fragments), f.Failure != ""}
	ends, err := proc.Exchange(ctx, s.Worker, mine)
	if err != nil {
		return reply{}, err
	}
	theirs := ends[s.peerRank()]
	s.base += theirs.Units
	f.Messages, f.Sent = int64(s.done), int64(s.posted)
	if !s.kind.isAcked() {
		f.Messages, f.Lost = theirs.Messages, int64(s.posted-theirs.Units)
	}
	f.Bytes = f.Messages * int64(s.Size)
	if s.kind.isFetch() {
		err = s.verifyMemory(s.payloadBytes(), s.payloadPattern(len(s.payloadBytes())), f.Messages, mine.Failed)
	}
	return reply{Flow: &f}, err
}

// postUntil posts until the deadline and then waits for the units in flight.
func (s *source) postUntil(ctx context.Context, deadline time.Time) error {
	s.posted, s.done, s.lost, s.lastCreditTime = 0, 0, 0, time.Now()
	for posts, expired := 1, false; !expired || !s.atMessageEnd(); posts++ {
		n := s.nextBatch()
		for !s.hasWindow(n) {
			if err := s.pollOnce(); err != nil {
				return err
			}
		}
		if err := s.postUnits(n); err != nil {
			return err
		}
		if posts%postsPerClockRead == 0 {
			expired = !time.Now().Before(deadline) || ctx.Err() != nil
		}
	}
	for s.done < s.posted || s.unitsInFlight() > 0 {
		if err := s.pollOnce(); err != nil {
			return err
		}
	}
	return nil
}

// nextBatch returns the number of units of the next post. A post does not cross the end of a
// fragmented message.
func (s *source) nextBatch() int {
	if s.fragments == 1 {
		return s.List
	}
	return min(s.List, s.fragments-int(s.posted%uint64(s.fragments)))
}

// atMessageEnd reports whether a round may end: the last message is completely posted, and the
// last unit is signaled.
func (s *source) atMessageEnd() bool {
	if s.fragments == 1 {
		return s.posted%uint64(s.signalInterval) == 0
	}
	return s.posted%uint64(s.fragments) == 0
}

// postUnits posts n units.
func (s *source) postUnits(n int) error {
	for i := range s.wrs[:n] {
		off, length := s.unitRange(s.posted)
		wr := &s.wrs[i]
		s.sges[i] = s.mr.SGE(dataOffset+off, length)
		wr.Flags = 0
		wr.Imm = uint32(s.posted)
		if s.kind.transport != verbs.UD {
			wr.RemoteAddr = s.remote.Addr + dataOffset + uint64(off)
		}
		s.posted++
	}
	if s.fragments > 1 || s.posted%uint64(s.signalInterval) == 0 {
		s.wrs[n-1].Flags = verbs.SendSignaled
		s.wrs[n-1].WRID = s.posted
	}
	_, err := s.qps[0].PostSend(s.wrs[:n])
	return err
}

// hasWindow reports whether n more units may be posted.
func (s *source) hasWindow(n int) bool {
	return s.posted+uint64(n)-s.done <= uint64(s.Depth) && s.unitsInFlight()+n <= s.window
}

// unitsInFlight returns the number of units in flight (UC, UD).
func (s *source) unitsInFlight() int {
	if s.kind.isAcked() {
		return 0
	}
	return int(s.posted) - int(s.lost) - int(s.counterValue()-s.base)
}

// pollOnce polls for completions and declares overdue units lost.
func (s *source) pollOnce() error {
	n, err := s.cq.Poll(s.wcs[:])
	for i := range s.wcs[:n] {
		if err := s.wcs[i].Err(); err != nil {
			return err
		}
		s.done = s.wcs[i].WRID
	}
	if n == 0 && !s.kind.isAcked() {
		s.declareLost()
	}
	return err
}

// declareLost counts the units in flight as lost if no credit has arrived for creditTimeout.
func (s *source) declareLost() {
	if s.emptyPolls++; s.emptyPolls%pollsPerCreditCheck != 0 {
		return
	}
	switch now, credits := time.Now(), s.counterValue(); {
	case credits != s.lastCredits:
		s.lastCredits, s.lastCreditTime = credits, now
	case now.Sub(s.lastCreditTime) > creditTimeout:
		s.lost += uint64(max(0, s.unitsInFlight()))
		s.lastCreditTime = now
	}
}
