package detector

import (
	"errors"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A failed rank also blocks the ranks that wait for a rank that has given up because of it. So a
// rank that receives a probe replies with the ranks that it has lost, and later sends new losses
// to the prober. A rank that learns of a lost rank disconnects from it, so that all ranks agree
// in the end.

// lossState are the lost ranks and the ranks that are notified of them.
type lossState struct {
	lossesSent   map[int]int // by rank that waits for us: number of entries of lost sent to it
	lost         []lostRank
	reportedLost map[int]lostRank // losses reported by other ranks
}

// lostRank is a rank that is lost.
type lostRank struct {
	rank     int
	reporter int // rank that has detected the loss
	reason   string
}

const maxReasonSize = 200 // bytes

// HandleRankLost records a lost rank and notifies the ranks that wait for us. The caller holds the
// engine's lock.
func (d *Detector) HandleRankLost(rank int) {
	core := d.engine.Core()
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
		x = lostRank{rank, d.engine.Rank(), cause[:min(len(cause), maxReasonSize)]}
	}
	d.lost = append(d.lost, x)
	for waiter := range d.lossesSent {
		d.sendLostRanks(core, waiter)
	}
}

// sendLostRanks sends the lost ranks to a rank, each once.
func (d *Detector) sendLostRanks(core *protocol.Core, to int) {
	for ; d.lossesSent[to] < len(d.lost); d.lossesSent[to]++ {
		x := d.lost[d.lossesSent[to]]
		if x.rank == to {
			continue
		}
		cause := x.reason
		if fab := d.engine.Fabric(); fab != nil {
			cause = cause[:min(len(cause), fab.Limits(to).Eager)]
		}
		d.SendPacket(core, to, envelope.Header{Tag: deadlock.PacketRankLost, ID: uint64(x.rank), Length: uint64(x.reporter)}, []byte(cause))
	}
}

// handleRankLost handles the report of a rank that has lost another.
func (d *Detector) handleRankLost(from int, rank, reporter uint64, cause []byte) error {
	e := d.engine
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
