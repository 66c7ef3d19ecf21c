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

// A rank that waits for a message sends nothing and would not notice that the sender has
// failed. So the detector sends a liveness probe to the ranks that are waited for: the adapter
// or the system of that rank must acknowledge the probe, also while the program computes, or
// the connection fails.
//
// A failed rank also blocks the ranks that wait for a rank that has given up because of it. So
// a rank that receives a probe replies with the ranks that it has lost, and later sends new
// losses to the prober. A rank that learns of a lost rank disconnects from it, so that all
// ranks agree in the end.

// lostRank is a rank that is lost.
type lostRank struct {
	rank     int
	reporter int // rank that has detected the loss
	reason   string
}

const (
	maxProbes     = 32  // maximum number of probes of one wait in a sample
	maxReasonSize = 200 // bytes
)

// probeRanks sends liveness probes to the ranks that a call waits for, with exponentially
// growing intervals.
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

// handleProbe handles a liveness probe.
func (l *deadlockDetector) handleProbe(core *protocol.Core, from int) {
	l.lossesSent[from] += 0
	l.sendLostRanks(core, from)
}

// onRankLost records a lost rank and notifies the ranks that wait for us.
func (l *deadlockDetector) onRankLost(core *protocol.Core, rank int) {
	delete(l.lossesSent, rank)
	l.dropUnconfirmed(core, rank)
	if d := (*departure)(nil); l.stopped || errors.As(core.PeerError(rank), &d) && d.mismatch { // a departed rank has notified all others
		return
	}
	x, reported := l.reportedLost[rank]
	if !reported {
		cause := ""
		if lost := (*protocol.LostError)(nil); errors.As(core.PeerError(rank), &lost) {
			cause = lost.Cause.Error()
		}
		x = lostRank{rank, l.world.eng.Rank(), cause[:min(len(cause), maxReasonSize)]}
	}
	l.lost = append(l.lost, x)
	for waiter := range l.lossesSent {
		l.sendLostRanks(core, waiter)
	}
}

// sendLostRanks sends the lost ranks to a rank, each once.
func (l *deadlockDetector) sendLostRanks(core *protocol.Core, to int) {
	for ; l.lossesSent[to] < len(l.lost); l.lossesSent[to]++ {
		x := l.lost[l.lossesSent[to]]
		if x.rank == to {
			continue
		}
		cause := x.reason
		if fab := l.world.eng.Fabric(); fab != nil {
			cause = cause[:min(len(cause), fab.Limits(to).Eager)]
		}
		l.sendPacket(core, to, envelope.Header{Tag: packetRankLost, ID: uint64(x.rank), Length: uint64(x.reporter)}, []byte(cause))
	}
}

// handleRankLost handles the report of a rank that has lost another.
func (l *deadlockDetector) handleRankLost(from int, rank, witness uint64, cause []byte) error {
	e := l.world.eng
	switch size := uint64(e.Size()); {
	case rank >= size || witness >= size || int(rank) == from:
		return fmt.Errorf("%w: invalid report that rank %d has lost rank %d", protocol.ErrProtocol, witness, rank)
	case int(rank) == e.Rank():
		return errors.New("peer reports this rank as lost")
	case e.Core().PeerError(int(rank)) == nil:
		text := strings.ToValidUTF8(string(cause[:min(len(cause), maxReasonSize)]), "?")
		l.reportedLost[int(rank)] = lostRank{int(rank), int(witness), text}
		e.Fabric().Disconnect(int(rank), fmt.Errorf("reported by rank %d: %s", witness, text))
	}
	return nil
}
