package onesided

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// Errors of calls on an invalid window.
var (
	ErrWin   = errors.New("mpi: invalid window") // MPI_ERR_WIN
	errNull  = fmt.Errorf("%w: null handle", ErrWin)
	errFreed = fmt.Errorf("%w: freed", ErrWin)
)

// A Window is the state of a window at one rank. Its methods are safe for concurrent use. The
// nil Window is the null window, whose calls return ErrWin. The engine's lock guards all fields
// that change.
type Window struct {
	comm         *comm.Comm // of the window alone: its context id identifies packets
	eng          *engine.Engine
	direct       bool          // Config.Direct
	peers        []peer        // by rank
	staticRegion localRegion   // memory given to CreateWindow
	dynamic      *dynamicState // nil unless the window is dynamic
	control      []uint64      // words of the lock, see lockWords
	exposed      []protocol.Registration
	freed        bool
	broken       error // error after the loss of a rank

	// Synchronization.
	epochs               epochs
	barrierSignals       []int // by round: signals that have arrived
	waits                []*syncWait
	testRound, syncRound uint64 // rounds of engine.PollStats.FirstInRound

	// Operations.
	idleTransfers []*transfer
	pending       pendingReplies
	buffers       packetBuffers
}

// pendingReplies are the replies that a window waits for, by the id of the packet that wants them.
// Those of lookups are in dynamicState.
type pendingReplies struct {
	lastID    uint64
	transfers map[uint64]*transfer
	fetchAdds map[uint64]func(uint64) // updates of words of locks
}

// newID returns an id for a packet that wants a reply.
func (r *pendingReplies) newID() uint64 {
	r.lastID++
	return r.lastID
}

// packetBuffers are the memory of the packets of a window, for reuse.
type packetBuffers struct {
	out, in       rma.Target // of the packet to send, and of the received one
	packet, reply []byte     // to send
}

// A peer is the state of a window for one rank.
type peer struct {
	rank            int // in the window
	job             int // in the job
	size, unit      int // of its memory and its displacement unit, in bytes
	kind            datatype.Kind
	staticRegion    remoteRegion             // its memory, unless the window is dynamic
	regions         rma.Spans[*remoteRegion] // attached memory that this rank has looked up
	control         envelope.Key             // key of the words of its lock
	direct, atomics bool                     // the adapter can do RDMA, and atomics
	epoch           peerEpoch
	sendQueue       sendQueue
	recvState       recvState
}

// recvState is the state of the packets received from a rank.
type recvState struct {
	received     uint64 // number of packets without a Reply
	handled      uint64 // of these, handled
	ackRequested bool   // an Ack is due when all are handled
	messages     int    // messages in progress to or from the memory here
}

// SizeOf returns the length of a rank's memory in bytes, comm.Undefined for a rank out of range.
func (w *Window) SizeOf(rank int) int {
	if !w.hasRank(rank) {
		return comm.Undefined
	}
	return w.peers[rank].size
}

// UnitOf returns the displacement unit of a rank in bytes, comm.Undefined for a rank out of range.
func (w *Window) UnitOf(rank int) int {
	if !w.hasRank(rank) {
		return comm.Undefined
	}
	return w.peers[rank].unit
}

// hasRank reports whether rank is in range.
func (w *Window) hasRank(rank int) bool { return w != nil && rank >= 0 && rank < len(w.peers) }

// allRanks returns all ranks of the window.
func (w *Window) allRanks() []int { return comm.RanksBelow(len(w.peers)) }

// epochOf returns the epoch of a rank, or of comm.ProcNull.
func (w *Window) epochOf(target int) (*peerEpoch, error) {
	switch {
	case target == comm.ProcNull:
		return &w.epochs.null, nil
	case !w.hasRank(target):
		return nil, fmt.Errorf("%w: %d, want [0, %d)", comm.ErrRank, target, len(w.peers))
	}
	return &w.peers[target].epoch, nil
}

// checkLocked returns an error unless a rank is locked.
func (w *Window) checkLocked(target int) error {
	e, err := w.epochOf(target)
	if err == nil && !w.epochs.all && e.locked == 0 {
		err = fmt.Errorf("%w: target not locked", ErrEpoch)
	}
	return err
}

// lockEngine acquires the engine's lock for a call. It fails if the window is null or freed.
func (w *Window) lockEngine() (*protocol.Core, error) {
	if w == nil {
		return nil, errNull
	}
	core, err := w.eng.Lock()
	if err == nil && w.freed {
		w.eng.Unlock()
		err = errFreed
	}
	return core, err
}

// packetLimit returns the maximum payload in bytes of a packet to a rank, without the id of a
// region.
func (w *Window) packetLimit(p *peer) int {
	if p.rank == w.comm.Rank {
		return math.MaxInt32
	}
	n := w.eng.Fabric().Limits(p.job).Eager
	if w.dynamic != nil {
		n -= regionIDSize
	}
	return n
}

// sendSignal sends a packet without payload.
func (w *Window) sendSignal(core *protocol.Core, p *peer, k packetType, id uint64) {
	// Errors are ignored: if the rank is lost, onRankLost breaks the window.
	_ = core.SendActive(p.job, envelope.Header{Context: w.comm.ContextID, Tag: int32(k), ID: id}, nil)
}

// sendPayload sends a packet with a payload of fixed size.
func (w *Window) sendPayload(core *protocol.Core, p *peer, h envelope.Header, what any) {
	h.Context = w.comm.ContextID
	payload, _ := binary.Append(nil, binary.LittleEndian, what)
	_ = core.SendActive(p.job, h, payload) // if the rank is lost, so is the window
}

// transmitQueued transmits all queued packets of the fabric, because the program may now
// compute for long.
func (w *Window) transmitQueued() {
	if fab := w.eng.Fabric(); fab != nil {
		w.eng.Do(func(*protocol.Core) { fab.Flush() })
	}
}
