package verbsbench

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/verbs"
)

// creditLooks is how many empty looks the sink takes before it gives credit
// for less than a quarter of a window.
const creditLooks = 16

// sink is the receiving end of a stream, or the one that is read.
type sink struct {
	*rig
	*plan
	in    *receives // nil if the adapter serves the source alone
	held  []uint64  // by slot of in: 1 + the unit that it holds
	round uint64

	come     uint64 // units, in this round
	whole    int64  // messages
	parts    int    // pieces of the message under way that came without a gap
	before   uint64 // units that came in earlier rounds
	credited uint64 // units of all rounds
}

func openSink(ctx context.Context, e *end, p *plan) (runner, error) {
	s := &sink{plan: p}
	o := rigOptions{kind: p.kind, qps: 1, limits: p.limits(), memory: p.slots * p.Size}
	if p.kind.opcode == verbs.WRSend || !p.kind.acked() {
		s.held = make([]uint64, min(o.limits.MaxRecvWR, max(2, workingSet/p.piece)))
		o.ready = func(r *rig) (err error) {
			s.in, err = newReceives(r, o.limits.MaxRecvWR, len(s.held), p.piece)
			return err
		}
	}
	var err error
	if s.rig, err = openRig(ctx, e, o); err != nil {
		return nil, err
	}
	port, err := e.dev.QueryPort(1)
	if err != nil {
		return nil, err
	}
	p.limitWindow(e.path.Bytes(), int(port.RecvBuffer))
	if p.kind.fetches() {
		copy(s.data(), s.pattern(len(s.data())))
		s.handOver()
	}
	return s, nil
}

func (s *sink) run(ctx context.Context, _ request) (reply, error) {
	s.empty()
	if err := proc.Barrier(ctx, s.Worker); err != nil {
		return reply{}, err
	}
	s.round++
	if s.in != nil {
		if err := s.receive(ctx); err != nil {
			return reply{}, err
		}
	}
	ends, err := proc.Exchange(ctx, s.Worker, roundEnd{Units: s.come, Messages: s.whole})
	if err != nil {
		return reply{}, err
	}
	if err := s.hear(); err != nil {
		return reply{}, err
	}
	return reply{}, s.check(ends[s.peer()])
}

// empty makes memory such that all that comes in the round shows.
func (s *sink) empty() {
	s.before += s.come
	s.come, s.whole, s.parts = 0, 0, 0
	if !s.kind.fetches() {
		clear(s.data())
	}
	clear(s.held)
	if s.in != nil {
		s.in.empty()
	}
	s.handOver()
}

// hear waits until the source's bell for the end of the round is here. It came
// behind all data, so whoever has seen it sees that too.
func (s *sink) hear() error {
	for w := (watch{}); s.rung() != s.round; {
		if s.dev.Progress() == 0 && w.expired() {
			return fmt.Errorf("verbsbench: the end of round %d did not come within %v", s.round, patience)
		}
	}
	return nil
}

// receive takes messages until the source rings.
func (s *sink) receive(ctx context.Context) error {
	for idle := 0; ctx.Err() == nil; {
		over := s.rung() == s.round // all has come by then, but may not have been polled
		n, err := s.cq.Poll(s.wcs[:])
		if err != nil {
			return err
		}
		for i := range s.wcs[:n] {
			if err := s.take(&s.wcs[i]); err != nil {
				return err
			}
		}
		if n > 0 {
			idle = 0
			continue
		}
		if over {
			return nil
		}
		if idle++; idle == creditLooks {
			if err := s.credit(); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// take takes one unit.
func (s *sink) take(wc *verbs.WC) error {
	if err := wc.Err(); err != nil {
		return err
	}
	unit := s.come
	if !s.kind.acked() {
		unit = uint64(wc.Imm)
	}
	s.come++
	switch {
	case s.pieces > 1:
		off, _ := s.place(unit)
		copy(s.data()[off:], s.in.payload(wc))
		s.join(int(unit % uint64(s.pieces)))
	case !s.kind.writes():
		s.held[s.in.slot(wc)] = 1 + unit
		s.whole++
	default:
		s.whole++
	}
	if err := s.in.giveBack(wc); err != nil {
		return err
	}
	if s.before+s.come-s.credited >= uint64(max(1, s.window/4)) {
		return s.credit()
	}
	return nil
}

// join counts the messages of which all pieces came, in order.
func (s *sink) join(piece int) {
	switch piece {
	case 0:
		s.parts = 1
	case s.parts:
		s.parts++
	default:
		s.parts = 0
	}
	if s.parts == s.pieces {
		s.whole++
	}
}

// credit tells the source what has come, if it does not hear so otherwise.
func (s *sink) credit() error {
	if s.kind.acked() || s.credited == s.before+s.come {
		return nil
	}
	s.credited = s.before + s.come
	return s.bell.ring(s.credited)
}

// check compares memory with what the source has sent.
func (s *sink) check(sent roundEnd) error {
	if s.kind.fetches() {
		return nil
	}
	holes := !s.kind.acked() || sent.Failed
	if s.in == nil || s.in.mr == nil || s.pieces > 1 {
		return s.verify(s.data(), s.pattern(len(s.data())), sent.Messages, holes)
	}
	if s.kind.acked() && !sent.Failed && s.come != sent.Units {
		return fmt.Errorf("wrong answer: %d messages came of %d", s.come, sent.Units)
	}
	for slot, unit := range s.held {
		memory := s.in.memory(slot)
		if unit == 0 {
			if !sent.Failed {
				if err := payload.CheckEmpty(memory); err != nil {
					return err
				}
			}
			continue
		}
		off, n := s.place(unit - 1)
		if err := s.pattern(off + n)[off:].Check(memory[:n], false); err != nil {
			return fmt.Errorf("message %d: %w", unit-1, err)
		}
	}
	return nil
}

func (s *sink) close() error {
	err := s.rig.close()
	if s.in != nil {
		err = errors.Join(err, s.in.close())
	}
	return err
}
