package collective

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// rdmaChannel is the state that consecutive collective calls keep when ranks write into each
// other's memory: the remote buffers of the others, and the local buffer that they know. A
// communicator has one for blocking calls and one for nonblocking calls that use the queue
// (queue.go); a persistent call has its own, as has each other nonblocking call,
// because calls may overtake each other.
//
// A buffer stays registered until the others have learned of the next one. Registration keeps
// the memory alive, so its address is not reused.
type rdmaChannel struct {
	callMu  sync.Mutex // held during a call
	comm    *comm.Comm
	id      uint32 // carried by write notifications
	oneCall bool   // used by a single call

	exposed registration // receive buffer that the others know
	address coll.Address

	remotes []remoteBuffer // by rank

	sendRegistration, recvRegistration registration // local send buffer, and receive buffer of two-sided transfers
	queue                              *rdma.Queue  // nil until first use

	// by rank: a write notification has come
	notified []bool
	broken   error // first failed call: the ranks may know different buffers since
}

// maxChannelID is the greatest id. Other notifications have the bit above.
const maxChannelID = 1<<31 - 1

// rdmaChannels are the channels of a rank by id. The engine's lock guards them.
type rdmaChannels struct {
	all    map[uint32]*rdmaChannel
	lastID uint32
}

// commRDMAChannels are the channels that a communicator keeps, nil until first use.
type commRDMAChannels struct {
	mu          sync.Mutex // acquired before the engine's lock
	blocking    *rdmaChannel
	nonblocking *rdmaChannel // of nonblocking calls at the front of the queue
}

// getOrCreate returns the channel in *which and creates it if it is nil.
func (cl *commRDMAChannels) getOrCreate(which **rdmaChannel, c *comm.Comm, table *rdmaChannels) *rdmaChannel {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if *which == nil {
		*which = table.newChannel(c)
	}
	return *which
}

func (cl *commRDMAChannels) closeAll(table *rdmaChannels) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for _, which := range []**rdmaChannel{&cl.blocking, &cl.nonblocking} {
		if *which != nil {
			table.closeChannel(*which)
			*which = nil
		}
	}
}

// newChannel makes a channel for a communicator.
func (chs *rdmaChannels) newChannel(c *comm.Comm) *rdmaChannel {
	l := &rdmaChannel{comm: c, remotes: make([]remoteBuffer, c.Size), notified: make([]bool, c.Size)}
	c.Engine.Do(func(*protocol.Core) {
		if chs.all == nil {
			chs.all = map[uint32]*rdmaChannel{}
		}
		for l.id == 0 || chs.all[l.id] != nil {
			chs.lastID = (chs.lastID + 1) & maxChannelID
			l.id = chs.lastID
		}
		chs.all[l.id] = l
	})
	return l
}

// closeChannel removes a channel and deregisters its memory.
func (chs *rdmaChannels) closeChannel(l *rdmaChannel) {
	l.comm.Engine.Do(func(*protocol.Core) {
		delete(chs.all, l.id)
		l.exposed.deregister(l.comm)
		l.sendRegistration.deregister(l.comm)
		l.recvRegistration.deregister(l.comm)
	})
}

// handleNotify implements protocol.Core.OnNotify.
func (chs *rdmaChannels) handleNotify(from int, number uint32) error {
	l := chs.all[number]
	if l == nil || l.broken != nil {
		return nil // notification of a failed call
	}
	r := l.comm.LocalRank(from)
	if r == comm.Undefined || l.notified[r] {
		return fmt.Errorf("unexpected write notification %d", number)
	}
	l.notified[r] = true
	return nil
}

// registration is registered memory.
type registration struct {
	mem     []byte
	exposed protocol.Registration // nil: none
}

// register registers memory in place of the registration before, and reports whether it was the
// same memory.
func (h *registration) register(c *comm.Comm, b []byte) (key envelope.Key, same bool, err error) {
	if h.exposed != nil && len(b) == len(h.mem) && unsafe.SliceData(b) == unsafe.SliceData(h.mem) {
		return key, true, nil
	}
	h.deregister(c)
	key, by, err := c.Engine.Fabric().RegisterMemory(c.WorldRank((c.Rank+1)%c.Size), b, true)
	if err == nil {
		h.mem, h.exposed = b, by
	}
	return key, false, err
}

// deregister deregisters the memory.
func (h *registration) deregister(c *comm.Comm) {
	if h.exposed != nil {
		c.Engine.Fabric().DeregisterMemory(h.exposed)
		*h = registration{}
	}
}

// exposeBuffer registers b as the target of the next call. known reports whether the others
// know it already. The caller holds the engine's lock.
func (ch *rdmaChannel) exposeBuffer(b []byte) (known bool, err error) {
	if ch.broken != nil {
		return false, ch.broken
	}
	key, known, err := ch.exposed.register(ch.comm, b)
	if err == nil && !known {
		key.ID = uint64(ch.id)
		key.MarshalTo(ch.address[:envelope.KeySize])
		binary.LittleEndian.PutUint64(ch.address[envelope.KeySize:], uint64(len(b)))
	}
	return known, err
}

// markBroken ends the use of a channel after a failed call.
func (ch *rdmaChannel) markBroken(err error) {
	if ch.broken == nil {
		ch.broken = fmt.Errorf("communicator %s: earlier alltoall failed: %w", ch.comm.Name(), err)
	}
}

// remoteBuffer is the memory of another rank.
type remoteBuffer struct {
	key envelope.Key // ID is the id of its channel, 0 if the buffer is not known
	len uint64       // bytes
}

var errAddress = errors.New("no remote buffer")

// setRemote records the buffer of a rank.
func (ch *rdmaChannel) setRemote(rank int, a coll.Address) error {
	p := remoteBuffer{len: binary.LittleEndian.Uint64(a[envelope.KeySize:])}
	if err := p.key.Unmarshal(a[:envelope.KeySize]); err != nil {
		return err
	}
	if p.key.ID == 0 || p.key.ID != uint64(uint32(p.key.ID)) {
		return errAddress
	}
	ch.remotes[rank] = p
	return nil
}

// remoteKey returns the key of the remote buffer of a rank at offset off.
func (ch *rdmaChannel) remoteKey(rank, off int) (envelope.Key, error) {
	p := ch.remotes[rank]
	switch {
	case p.key.ID == 0:
		return p.key, fmt.Errorf("%w of rank %d", errAddress, rank)
	case p.len != uint64(len(ch.exposed.mem)):
		return p.key, fmt.Errorf("%w: rank %d receives %d bytes, rank %d receives %d", deadlock.ErrMismatch, rank, p.len, ch.comm.Rank, len(ch.exposed.mem))
	}
	p.key.Addr += uint64(off)
	return p.key, nil
}
