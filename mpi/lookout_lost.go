package mpi

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Who waits for a message sends nothing, and would not notice that its sender is gone.
// So those who are waited for are sent a packet now and then: their adapter, or system,
// has to acknowledge it, or the connection breaks. That is so also of a rank that
// computes.
//
// A rank that is gone is also the end of those who wait for somebody who has given up
// because of it. So who is asked for a sign of life tells in return which ranks it has
// lost, and those who have asked are told of new ones at once. Whoever hears of a lost
// rank cuts it off as well, so that all agree about it sooner or later.

// lostRank is a rank that is lost.
type lostRank struct {
	rank     int
	reporter int // who has found out
	reason   string
}

const (
	maxProbes     = 32  // that are asked for at a time, by one who waits for any of many
	maxReasonSize = 200 // bytes of a reason
)

// probeRanks asks those that a call waits for for a sign of life: soon, and then less and less
// often.
func (l *deadlockDetector) probeRanks(core *protocol.Core, x *waitState, waits engine.Waitable, c deadlock.Call, now time.Time) {
	h, payload := envelope.Header{Tag: packetProbe}, []byte(nil)
	if n, ok := waits.(*callNet); ok && n.callSignature() != 0 && n.comm.fixedTag == 0 {
		h.ID, payload = uint64(n.comm.contextID), n.call.encodeProbe()
	}
	for range min(len(c.For), maxProbes) {
		rank := c.For[x.nextRank%len(c.For)]
		if x.nextRank++; rank != l.world.eng.Rank() && core.Backlog(rank) == 0 {
			l.sendPacket(core, rank, h, payload)
		}
	}
	x.probedAt = now
	if x.nextRank >= len(c.For) { // all of them
		x.nextRank = 0
		x.probeInterval = min(2*x.probeInterval, l.world.o.maxProbeInterval())
	}
}

// handleProbe is called when a rank that waits for us wants a sign of life.
func (l *deadlockDetector) handleProbe(core *protocol.Core, from int) {
	l.lossesSent[from] += 0
	l.sendLostRanks(core, from)
}

// onRankLost is called when a rank is lost.
func (l *deadlockDetector) onRankLost(core *protocol.Core, rank int) {
	delete(l.lossesSent, rank)
	if l.stopped {
		return
	}
	x, heard := l.reportedLost[rank]
	if !heard {
		why := ""
		if lost := (*protocol.LostError)(nil); errors.As(core.PeerError(rank), &lost) {
			why = lost.Cause.Error()
		}
		x = lostRank{rank, l.world.eng.Rank(), why[:min(len(why), maxReasonSize)]}
	}
	l.lost = append(l.lost, x)
	for waiter := range l.lossesSent {
		l.sendLostRanks(core, waiter)
	}
}

// sendLostRanks tells a rank of those that are lost, each once.
func (l *deadlockDetector) sendLostRanks(core *protocol.Core, to int) {
	for ; l.lossesSent[to] < len(l.lost); l.lossesSent[to]++ {
		x := l.lost[l.lossesSent[to]]
		if x.rank == to {
			continue
		}
		why := x.reason
		if fab := l.world.eng.Fabric(); fab != nil {
			why = why[:min(len(why), fab.Limits(to).Eager)]
		}
		l.sendPacket(core, to, envelope.Header{Tag: packetRankLost, ID: uint64(x.rank), Length: uint64(x.reporter)}, []byte(why))
	}
}

// handleRankLost is called when a rank says that it has lost one.
func (l *deadlockDetector) handleRankLost(from int, rank, witness uint64, why []byte) error {
	e := l.world.eng
	switch size := uint64(e.Size()); {
	case rank >= size || witness >= size || int(rank) == from:
		return fmt.Errorf("%w: rank %d has lost rank %d", protocol.ErrProtocol, witness, rank)
	case int(rank) == e.Rank():
		return errors.New("it has lost us")
	case e.Core().PeerError(int(rank)) == nil:
		text := strings.ToValidUTF8(string(why[:min(len(why), maxReasonSize)]), "?")
		l.reportedLost[int(rank)] = lostRank{int(rank), int(witness), text}
		e.Fabric().Disconnect(int(rank), fmt.Errorf("as rank %d says: %s", witness, text))
	}
	return nil
}
