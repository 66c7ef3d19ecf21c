package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// rdmaChannel is what collective calls that are made one after the other keep for the next
// one, when ranks write into each other's memory: where the memory of the others is,
// and which of ours they know. A communicator has one for its blocking calls, a
// persistent call its own; a call in the background has one to itself, since others
// may overtake it, unless it waits in line (collective_line.go).
//
// What the others know stays exposed until they have been told of other memory, and
// then they write to that. Memory that is exposed stays alive, so that no other can
// have its address.
type rdmaChannel struct {
	callMu  sync.Mutex // one call at a time
	comm    *Comm
	id      uint32 // notices of others have it
	oneCall bool   // for one call

	exposed registration // the memory that they know of
	address coll.Address

	remotes []remoteBuffer // by rank

	sendRegistration, recvRegistration registration // what we send from, and receive into unless others write
	queue                              *rdma.Queue  // nil: there has been no use for it

	// The engine's lock guards these.
	notified []bool // by rank: a notice has come
	broken   error  // a call has failed: nobody knows who knows what
}

// rdmaChannels are those of a rank by number, which the engine's lock guards.
type rdmaChannels struct {
	all    map[uint32]*rdmaChannel
	lastID uint32
}

// commRDMAChannels are the lanes of a communicator that last, or nil until there is a use
// for them.
type commRDMAChannels struct {
	mu          sync.Mutex // taken before the engine's
	blocking    *rdmaChannel
	nonblocking *rdmaChannel // of calls in the background that have the queue in turns
}

// getOrCreate is one of them.
func (cl *commRDMAChannels) getOrCreate(which **rdmaChannel, c *Comm) *rdmaChannel {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if *which == nil {
		*which = c.world.channels.newChannel(c)
	}
	return *which
}

// closeAll gives them up.
func (cl *commRDMAChannels) closeAll(c *Comm) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for _, which := range []**rdmaChannel{&cl.blocking, &cl.nonblocking} {
		if *which != nil {
			c.world.channels.closeChannel(*which)
			*which = nil
		}
	}
}

// newChannel makes a lane for a communicator.
func (ls *rdmaChannels) newChannel(c *Comm) *rdmaChannel {
	l := &rdmaChannel{comm: c, remotes: make([]remoteBuffer, c.size), notified: make([]bool, c.size)}
	c.eng.Do(func(*protocol.Core) {
		if ls.all == nil {
			ls.all = map[uint32]*rdmaChannel{}
		}
		for l.id == 0 || ls.all[l.id] != nil {
			ls.lastID++
			l.id = ls.lastID
		}
		ls.all[l.id] = l
	})
	return l
}

// closeChannel gives up a lane, and what it has exposed.
func (ls *rdmaChannels) closeChannel(l *rdmaChannel) {
	l.comm.eng.Do(func(*protocol.Core) {
		delete(ls.all, l.id)
		l.exposed.deregister(l.comm)
		l.sendRegistration.deregister(l.comm)
		l.recvRegistration.deregister(l.comm)
	})
}

// handleNotify is protocol.Core.OnNotify.
func (ls *rdmaChannels) handleNotify(from int, number uint32) error {
	l := ls.all[number]
	if l == nil || l.broken != nil {
		return nil // of a call that has failed
	}
	r := l.comm.localRank(from)
	if r == Undefined || l.notified[r] {
		return fmt.Errorf("notice %d, which is not due", number)
	}
	l.notified[r] = true
	return nil
}

// registration is memory that is registered.
type registration struct {
	mem     []byte
	exposed protocol.Registration // nil: there is none
}

// register registers memory instead of what was before, and reports whether that was
// the same.
func (h *registration) register(c *Comm, b []byte) (key envelope.Key, same bool, err error) {
	if h.exposed != nil && len(b) == len(h.mem) && unsafe.SliceData(b) == unsafe.SliceData(h.mem) {
		return key, true, nil
	}
	h.deregister(c)
	key, by, err := c.eng.Fabric().RegisterMemory(c.worldRank((c.rank+1)%c.size), b, true)
	if err == nil {
		h.mem, h.exposed = b, by
	}
	return key, false, err
}

// deregister takes it back.
func (h *registration) deregister(c *Comm) {
	if h.exposed != nil {
		c.eng.Fabric().DeregisterMemory(h.exposed)
		*h = registration{}
	}
}

// exposeBuffer has the others write to b in the next call. The caller has the engine's
// lock.
func (l *rdmaChannel) exposeBuffer(b []byte) (known bool, err error) {
	if l.broken != nil {
		return false, l.broken
	}
	key, known, err := l.exposed.register(l.comm, b)
	if err == nil && !known {
		key.ID = uint64(l.id)
		key.MarshalTo(l.address[:envelope.KeySize])
		binary.LittleEndian.PutUint64(l.address[envelope.KeySize:], uint64(len(b)))
	}
	return known, err
}

// markBroken ends the use of a lane after a call that has failed.
func (l *rdmaChannel) markBroken(err error) {
	if l.broken == nil {
		l.broken = fmt.Errorf("an alltoall of %s has failed before: %w", l.comm.Name(), err)
	}
}

// remoteBuffer is memory of another rank.
type remoteBuffer struct {
	key envelope.Key // ID is the number of its lane, 0 if nothing is known
	len uint64       // bytes
}

var errAddress = errors.New("no address of memory")

// setRemote takes note of where a rank's memory is.
func (l *rdmaChannel) setRemote(rank int, a coll.Address) error {
	p := remoteBuffer{len: binary.LittleEndian.Uint64(a[envelope.KeySize:])}
	if err := p.key.Unmarshal(a[:envelope.KeySize]); err != nil {
		return err
	}
	if p.key.ID == 0 || p.key.ID != uint64(uint32(p.key.ID)) {
		return errAddress
	}
	l.remotes[rank] = p
	return nil
}

// remoteKey is where to write to a rank, off bytes behind the beginning.
func (l *rdmaChannel) remoteKey(rank, off int) (envelope.Key, error) {
	p := l.remotes[rank]
	switch {
	case p.key.ID == 0:
		return p.key, fmt.Errorf("%w of rank %d", errAddress, rank)
	case p.len != uint64(len(l.exposed.mem)):
		return p.key, fmt.Errorf("%w: rank %d receives %d bytes, and rank %d %d", ErrMismatch, rank, p.len, l.comm.rank, len(l.exposed.mem))
	}
	p.key.Addr += uint64(off)
	return p.key, nil
}
