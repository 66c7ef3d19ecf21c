package verbsbench

import (
	"context"
	"errors"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/verbs"
)

// stall is how long the source waits for credits before it counts what is in
// flight as lost.
const stall = 20 * time.Millisecond

const (
	clockPosts = 8   // posts that share one look at the clock
	stallLooks = 256 // empty looks that do
)

// roundEnd is what the source tells the sink when a round is over, and the
// other way.
type roundEnd struct {
	Units    uint64 // posted; come
	Messages int64  // posted to the end; come whole
	Failed   bool   // the queue pair did
}

// source is the sending end of a stream, or the reading one. Its counts are of
// units in the round.
type source struct {
	*rig
	*plan
	wrs    []verbs.SendWR
	sges   []verbs.SGE
	round  uint64
	posted uint64
	done   uint64 // completed
	lost   uint64 // given up (UC, UD)
	base   uint64 // units of earlier rounds that the sink has got

	// For giving up.
	looks   int
	credits uint64    // as they were
	heard   time.Time // when they changed
}

func openSource(ctx context.Context, e *end, p *plan) (runner, error) {
	r, err := openRig(ctx, e, rigOptions{kind: p.kind, qps: 1, limits: p.limits(), memory: p.slots * p.Size})
	if err != nil {
		return nil, err
	}
	s := &source{rig: r, plan: p, wrs: make([]verbs.SendWR, p.List), sges: make([]verbs.SGE, p.List)}
	p.limitWindow(e.path.Bytes(), int(r.theirs.QPs[0].RecvBuffer))
	for i := range s.wrs {
		s.wrs[i] = r.request(s.sges[i:], 0, 0, 0)
		if !s.kind.acked() {
			s.wrs[i].Opcode = s.kind.withImm
		}
	}
	if !s.kind.fetches() {
		copy(r.data(), r.pattern(len(r.data())))
	}
	return s, nil
}

func (s *source) run(ctx context.Context, r request) (reply, error) {
	if s.kind.fetches() {
		clear(s.data())
	}
	if err := proc.Barrier(ctx, s.Worker); err != nil {
		return reply{}, err
	}
	start := time.Now()
	err := s.stream(ctx, start.Add(r.For))
	f := Flow{Elapsed: time.Since(start)}
	var failed *verbs.CompletionError
	if errors.As(err, &failed) {
		f.Failure = failed.Error()
	} else if err != nil {
		return reply{}, err
	}
	s.round++
	if err := s.bell.ring(s.round); err != nil {
		return reply{}, err
	}
	mine := roundEnd{s.posted, int64(s.posted) / int64(s.pieces), f.Failure != ""}
	ends, err := proc.Exchange(ctx, s.Worker, mine)
	if err != nil {
		return reply{}, err
	}
	theirs := ends[s.peer()]
	s.base += theirs.Units
	f.Messages, f.Sent = int64(s.done), int64(s.posted)
	if !s.kind.acked() {
		f.Messages, f.Lost = theirs.Messages, int64(s.posted-theirs.Units)
	}
	f.Bytes = f.Messages * int64(s.Size)
	if s.kind.fetches() {
		err = s.verify(s.data(), s.pattern(len(s.data())), f.Messages, mine.Failed)
	}
	return reply{Flow: &f}, err
}

// stream posts until the deadline and then waits for what is under way.
func (s *source) stream(ctx context.Context, deadline time.Time) error {
	s.posted, s.done, s.lost, s.heard = 0, 0, 0, time.Now()
	for posts, late := 1, false; !late || !s.whole(); posts++ {
		n := s.next()
		for !s.room(n) {
			if err := s.look(); err != nil {
				return err
			}
		}
		if err := s.post(n); err != nil {
			return err
		}
		if posts%clockPosts == 0 {
			late = !time.Now().Before(deadline) || ctx.Err() != nil
		}
	}
	for s.done < s.posted || s.flying() > 0 {
		if err := s.look(); err != nil {
			return err
		}
	}
	return nil
}

// next is how many units the next post takes. None crosses the end of a
// message in pieces.
func (s *source) next() int {
	if s.pieces == 1 {
		return s.List
	}
	return min(s.List, s.pieces-int(s.posted%uint64(s.pieces)))
}

// whole reports whether a round may end here: all that was posted is going to
// complete, and the last message has been posted to its end.
func (s *source) whole() bool {
	if s.pieces == 1 {
		return s.posted%uint64(s.group) == 0
	}
	return s.posted%uint64(s.pieces) == 0
}

// post posts n units.
func (s *source) post(n int) error {
	for i := range s.wrs[:n] {
		off, length := s.place(s.posted)
		wr := &s.wrs[i]
		s.sges[i] = s.mr.SGE(dataOffset+off, length)
		wr.Flags = 0
		wr.Imm = uint32(s.posted)
		if s.kind.transport != verbs.UD {
			wr.RemoteAddr = s.theirs.Addr + dataOffset + uint64(off)
		}
		s.posted++
	}
	if s.pieces > 1 || s.posted%uint64(s.group) == 0 {
		s.wrs[n-1].Flags = verbs.SendSignaled
		s.wrs[n-1].WRID = s.posted
	}
	_, err := s.qps[0].PostSend(s.wrs[:n])
	return err
}

// room reports whether n more units may be posted.
func (s *source) room(n int) bool {
	return s.posted+uint64(n)-s.done <= uint64(s.Depth) && s.flying()+n <= s.window
}

// flying is how many units are under way that no completion tells of.
func (s *source) flying() int {
	if s.kind.acked() {
		return 0
	}
	return int(s.posted) - int(s.lost) - int(s.rung()-s.base)
}

// look takes completions, and gives up what does not arrive.
func (s *source) look() error {
	n, err := s.cq.Poll(s.wcs[:])
	for i := range s.wcs[:n] {
		if err := s.wcs[i].Err(); err != nil {
			return err
		}
		s.done = s.wcs[i].WRID
	}
	if n == 0 && !s.kind.acked() {
		s.giveUp()
	}
	return err
}

// giveUp counts what is flying as lost if no credit has come for a while.
func (s *source) giveUp() {
	if s.looks++; s.looks%stallLooks != 0 {
		return
	}
	switch now, credits := time.Now(), s.rung(); {
	case credits != s.credits:
		s.credits, s.heard = credits, now
	case now.Sub(s.heard) > stall:
		s.lost += uint64(max(0, s.flying()))
		s.heard = now
	}
}
