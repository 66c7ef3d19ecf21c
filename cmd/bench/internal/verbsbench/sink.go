package verbsbench

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/verbs"
)

// creditIdlePolls is the number of empty polls after which the sink returns credits for less
// than a quarter of a window.
const creditIdlePolls = 16

// A sink is the receiving side of a stream, or for reads the target.
type sink struct {
	*rig
	*streamPlan
	recvs      *recvPool // nil if the adapter serves the source without this program
	unitBySlot []uint64  // by slot of recvs: 1 + received unit
	round      uint64

	received     uint64 // units in this round
	messages     int64  // complete messages in this round
	nextFragment int    // next expected fragment of the current message
	earlierUnits uint64 // units received in earlier rounds
	credited     uint64 // units of all rounds for which credits were returned
}

func openSink(ctx context.Context, e *side, p *streamPlan) (runner, error) {
	s := &sink{streamPlan: p}
	o := rigOptions{kind: p.kind, qps: 1, limits: p.qpCap(), memory: p.slots * p.Size}
	if p.kind.opcode == verbs.WRSend || !p.kind.isAcked() {
		s.unitBySlot = make([]uint64, min(o.limits.MaxRecvWR, max(2, workingSet/p.unitSize)))
		o.ready = func(r *rig) (err error) {
			s.recvs, err = newRecvPool(r, o.limits.MaxRecvWR, len(s.unitBySlot), p.unitSize)
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
	if p.kind.isFetch() {
		copy(s.payloadBytes(), s.payloadPattern(len(s.payloadBytes())))
		s.syncMemory()
	}
	return s, nil
}

func (s *sink) runRound(ctx context.Context, _ request) (reply, error) {
	s.resetRound()
	if err := proc.Barrier(ctx, s.Worker); err != nil {
		return reply{}, err
	}
	s.round++
	if s.recvs != nil {
		if err := s.receiveUnits(ctx); err != nil {
			return reply{}, err
		}
	}
	ends, err := proc.Exchange(ctx, s.Worker, roundEnd{Units: s.received, Messages: s.messages})
	if err != nil {
		return reply{}, err
	}
	if err := s.waitRoundEnd(); err != nil {
		return reply{}, err
	}
	return reply{}, s.verifyRound(ends[s.peerRank()])
}

// resetRound clears memory, so that all data of the next round is visible.
func (s *sink) resetRound() {
	s.earlierUnits += s.received
	s.received, s.messages, s.nextFragment = 0, 0, 0
	if !s.kind.isFetch() {
		clear(s.payloadBytes())
	}
	clear(s.unitBySlot)
	if s.recvs != nil {
		s.recvs.clearSlots()
	}
	s.syncMemory()
}

// waitRoundEnd waits until the source has written the end of the round. The source writes it
// after all data, so the data has arrived as well.
func (s *sink) waitRoundEnd() error {
	for w := (pollDeadline{}); s.counterValue() != s.round; {
		if s.dev.Progress() == 0 && w.hasExpired() {
			return fmt.Errorf("verbsbench: end of round %d: not received within %v", s.round, pollTimeout)
		}
	}
	return nil
}

// receiveUnits receives units until the source signals the end of the round.
func (s *sink) receiveUnits(ctx context.Context) error {
	w := pollDeadline{timeout: stallTimeout}
	for idle := 0; ctx.Err() == nil; {
		ended := s.counterValue() == s.round // all units have arrived, but may not have been polled
		n, err := s.cq.Poll(s.wcs[:])
		if err != nil {
			return err
		}
		for i := range s.wcs[:n] {
			if err := s.acceptUnit(&s.wcs[i]); err != nil {
				return err
			}
		}
		if n > 0 {
			idle, w = 0, pollDeadline{timeout: stallTimeout}
			continue
		}
		if ended {
			return nil
		}
		if w.hasExpired() {
			return fmt.Errorf("verbsbench: round %d: neither a unit nor the end of the round within %v", s.round, stallTimeout)
		}
		if idle++; idle == creditIdlePolls {
			if err := s.sendCredit(); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// acceptUnit handles the completion of one unit.
func (s *sink) acceptUnit(wc *verbs.WC) error {
	if err := wc.Err(); err != nil {
		return err
	}
	unit := s.received
	if !s.kind.isAcked() {
		unit = uint64(wc.Imm)
	}
	s.received++
	switch {
	case s.fragments > 1:
		off, _ := s.unitRange(unit)
		copy(s.payloadBytes()[off:], s.recvs.payloadOf(wc))
		s.countFragment(int(unit % uint64(s.fragments)))
	case !s.kind.isWrite():
		s.unitBySlot[s.recvs.slotIndex(wc)] = 1 + unit
		s.messages++
	default:
		s.messages++
	}
	if err := s.recvs.repostRecv(wc); err != nil {
		return err
	}
	if s.earlierUnits+s.received-s.credited >= uint64(max(1, s.window/4)) {
		return s.sendCredit()
	}
	return nil
}

// countFragment counts the messages whose fragments arrived completely and in order.
func (s *sink) countFragment(piece int) {
	switch piece {
	case 0:
		s.nextFragment = 1
	case s.nextFragment:
		s.nextFragment++
	default:
		s.nextFragment = 0
	}
	if s.nextFragment == s.fragments {
		s.messages++
	}
}

// sendCredit returns credits to the source, unless acknowledgements do.
func (s *sink) sendCredit() error {
	if s.kind.isAcked() || s.credited == s.earlierUnits+s.received {
		return nil
	}
	s.credited = s.earlierUnits + s.received
	return s.counter.writeValue(s.credited)
}

// verifyRound compares memory with the data that the source sent.
func (s *sink) verifyRound(sent roundEnd) error {
	if s.kind.isFetch() {
		return nil
	}
	holes := !s.kind.isAcked() || sent.Failed
	if s.recvs == nil || s.recvs.mr == nil || s.fragments > 1 {
		return s.verifyMemory(s.payloadBytes(), s.payloadPattern(len(s.payloadBytes())), sent.Messages, holes)
	}
	if s.kind.isAcked() && !sent.Failed && s.received != sent.Units {
		return fmt.Errorf("wrong data: %d of %d messages received", s.received, sent.Units)
	}
	for slot, unit := range s.unitBySlot {
		memory := s.recvs.slotBuffer(slot)
		if unit == 0 {
			if !sent.Failed {
				if err := payload.CheckEmpty(memory); err != nil {
					return err
				}
			}
			continue
		}
		off, n := s.unitRange(unit - 1)
		if err := s.payloadPattern(off + n)[off:].Check(memory[:n], false); err != nil {
			return fmt.Errorf("message %d: %w", unit-1, err)
		}
	}
	return nil
}

func (s *sink) close() error {
	err := s.rig.close()
	if s.recvs != nil {
		err = errors.Join(err, s.recvs.close())
	}
	return err
}
