package mpi

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
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

// probeSchedule is the schedule of the liveness probes of a wait.
type probeSchedule struct {
	last     time.Time
	interval time.Duration // time to the next probes
	next     int           // index of the next rank to probe
}

// probeRanks sends liveness probes to the ranks that a call waits for, with exponentially
// growing intervals.
func (d *deadlockDetector) probeRanks(core *protocol.Core, x *probeSchedule, h envelope.Header, payload []byte, ranks []int, now time.Time) {
	h.Tag = deadlock.PacketProbe
	for range min(len(ranks), maxProbes) {
		rank := ranks[x.next%len(ranks)]
		if x.next++; rank != d.world.eng.Rank() && core.Backlog(rank) == 0 {
			d.SendPacket(core, rank, h, payload)
		}
	}
	x.last = now
	if x.next >= len(ranks) { // all of them
		x.next = 0
		x.interval = min(2*x.interval, d.world.o.maxProbeInterval())
	}
}

// handleProbe handles a liveness probe.
func (d *deadlockDetector) handleProbe(core *protocol.Core, from int) {
	d.lossesSent[from] += 0
	d.sendLostRanks(core, from)
}

// onRankLost records a lost rank and notifies the ranks that wait for us.
func (d *deadlockDetector) onRankLost(core *protocol.Core, rank int) {
	delete(d.lossesSent, rank)
	d.dropUnconfirmed(core, rank)
	if dep := (*departure)(nil); d.stopped || errors.As(core.PeerError(rank), &dep) && dep.mismatch { // a departed rank has notified all others
		return
	}
	x, reported := d.reportedLost[rank]
	if !reported {
		cause := ""
		if lost := (*protocol.LostError)(nil); errors.As(core.PeerError(rank), &lost) {
			cause = lost.Cause.Error()
		}
		x = lostRank{rank, d.world.eng.Rank(), cause[:min(len(cause), maxReasonSize)]}
	}
	d.lost = append(d.lost, x)
	for waiter := range d.lossesSent {
		d.sendLostRanks(core, waiter)
	}
}

// sendLostRanks sends the lost ranks to a rank, each once.
func (d *deadlockDetector) sendLostRanks(core *protocol.Core, to int) {
	for ; d.lossesSent[to] < len(d.lost); d.lossesSent[to]++ {
		x := d.lost[d.lossesSent[to]]
		if x.rank == to {
			continue
		}
		cause := x.reason
		if fab := d.world.eng.Fabric(); fab != nil {
			cause = cause[:min(len(cause), fab.Limits(to).Eager)]
		}
		d.SendPacket(core, to, envelope.Header{Tag: deadlock.PacketRankLost, ID: uint64(x.rank), Length: uint64(x.reporter)}, []byte(cause))
	}
}

// handleRankLost handles the report of a rank that has lost another.
func (d *deadlockDetector) handleRankLost(from int, rank, reporter uint64, cause []byte) error {
	e := d.world.eng
	switch size := uint64(e.Size()); {
	case rank >= size || reporter >= size || int(rank) == from:
		return fmt.Errorf("%w: invalid report that rank %d has lost rank %d", protocol.ErrProtocol, reporter, rank)
	case int(rank) == e.Rank():
		return errors.New("peer reports this rank as lost")
	case e.Core().PeerError(int(rank)) == nil:
		text := strings.ToValidUTF8(string(cause[:min(len(cause), maxReasonSize)]), "?")
		d.reportedLost[int(rank)] = lostRank{int(rank), int(reporter), text}
		e.Fabric().Disconnect(int(rank), fmt.Errorf("reported by rank %d: %s", reporter, text))
	}
	return nil
}
