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

// losses are the lost ranks and the ranks that are notified of them. The engine's lock guards it.
type losses struct {
	*rank
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

// handleProbe handles a liveness probe.
func (l *losses) handleProbe(core *protocol.Core, from int) {
	l.lossesSent[from] += 0
	l.sendLostRanks(core, from)
}

// addLoss records a lost rank and notifies the ranks that wait for us.
func (l *losses) addLoss(core *protocol.Core, rank int) {
	x, reported := l.reportedLost[rank]
	if !reported {
		cause := ""
		if lost := (*protocol.LostError)(nil); errors.As(core.PeerError(rank), &lost) {
			cause = lost.Cause.Error()
		}
		x = lostRank{rank, l.engine.Rank(), cause[:min(len(cause), maxReasonSize)]}
	}
	l.lost = append(l.lost, x)
	for waiter := range l.lossesSent {
		l.sendLostRanks(core, waiter)
	}
}

// sendLostRanks sends the lost ranks to a rank, each once.
func (l *losses) sendLostRanks(core *protocol.Core, to int) {
	for ; l.lossesSent[to] < len(l.lost); l.lossesSent[to]++ {
		x := l.lost[l.lossesSent[to]]
		if x.rank == to {
			continue
		}
		cause := x.reason
		if fab := l.engine.Fabric(); fab != nil {
			cause = cause[:min(len(cause), fab.Limits(to).Eager)]
		}
		l.SendPacket(core, to, envelope.Header{Tag: deadlock.PacketRankLost, ID: uint64(x.rank), Length: uint64(x.reporter)}, []byte(cause))
	}
}

// handleRankLost handles the report of a rank that has lost another.
func (l *losses) handleRankLost(from int, rank, reporter uint64, cause []byte) error {
	e := l.engine
	switch size := uint64(e.Size()); {
	case rank >= size || reporter >= size || int(rank) == from:
		return fmt.Errorf("%w: invalid report that rank %d has lost rank %d", protocol.ErrProtocol, reporter, rank)
	case int(rank) == e.Rank():
		return errors.New("peer reports this rank as lost")
	case e.Core().PeerError(int(rank)) == nil:
		text := strings.ToValidUTF8(string(cause[:min(len(cause), maxReasonSize)]), "?")
		l.reportedLost[int(rank)] = lostRank{int(rank), int(reporter), text}
		e.Fabric().Disconnect(int(rank), fmt.Errorf("reported by rank %d: %s", reporter, text))
	}
	return nil
}
