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

// lane is what collective calls that are made one after the other keep for the next
// one, when ranks write into each other's memory: where the memory of the others is,
// and which of ours they know. A communicator has one for its blocking calls, a
// persistent call its own; a call in the background has one to itself, since others
// may overtake it, unless it waits in line (collective_line.go).
//
// What the others know stays exposed until they have been told of other memory, and
// then they write to that. Memory that is exposed stays alive, so that no other can
// have its address.
type lane struct {
	calls  sync.Mutex // one call at a time
	comm   *Comm
	number uint32 // notices of others have it
	single bool   // for one call

	mine    hold // the memory that they know of
	address coll.Address

	theirs []place // by rank

	pinned, landing hold        // what we send from, and receive into unless others write
	queue           *rdma.Queue // nil: there has been no use for it

	// The engine's lock guards these.
	came   []bool // by rank: a notice has come
	broken error  // a call has failed: nobody knows who knows what
}

// lanes are those of a rank by number, which the engine's lock guards.
type lanes struct {
	all  map[uint32]*lane
	last uint32
}

// commLanes are the lanes of a communicator that last, or nil until there is a use
// for them.
type commLanes struct {
	mu       sync.Mutex // taken before the engine's
	blocking *lane
	queued   *lane // of calls in the background that have the queue in turns
}

// last is one of them.
func (cl *commLanes) last(which **lane, c *Comm) *lane {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if *which == nil {
		*which = c.world.lanes.add(c)
	}
	return *which
}

// end gives them up.
func (cl *commLanes) end(c *Comm) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for _, which := range []**lane{&cl.blocking, &cl.queued} {
		if *which != nil {
			c.world.lanes.end(*which)
			*which = nil
		}
	}
}

// add makes a lane for a communicator.
func (ls *lanes) add(c *Comm) *lane {
	l := &lane{comm: c, theirs: make([]place, c.size), came: make([]bool, c.size)}
	c.eng.Do(func(*protocol.Core) {
		if ls.all == nil {
			ls.all = map[uint32]*lane{}
		}
		for l.number == 0 || ls.all[l.number] != nil {
			ls.last++
			l.number = ls.last
		}
		ls.all[l.number] = l
	})
	return l
}

// end gives up a lane, and what it has exposed.
func (ls *lanes) end(l *lane) {
	l.comm.eng.Do(func(*protocol.Core) {
		delete(ls.all, l.number)
		l.mine.leave(l.comm)
		l.pinned.leave(l.comm)
		l.landing.leave(l.comm)
	})
}

// noticed is protocol.Core.OnNotify.
func (ls *lanes) noticed(from int, number uint32) error {
	l := ls.all[number]
	if l == nil || l.broken != nil {
		return nil // of a call that has failed
	}
	r := l.comm.local(from)
	if r == Undefined || l.came[r] {
		return fmt.Errorf("notice %d, which is not due", number)
	}
	l.came[r] = true
	return nil
}

// hold is memory that is registered.
type hold struct {
	mem []byte
	by  protocol.Registration // nil: there is none
}

// take registers memory instead of what was before, and reports whether that was
// the same.
func (h *hold) take(c *Comm, b []byte) (key envelope.Key, same bool, err error) {
	if h.by != nil && len(b) == len(h.mem) && unsafe.SliceData(b) == unsafe.SliceData(h.mem) {
		return key, true, nil
	}
	h.leave(c)
	key, by, err := c.eng.Fabric().RegisterMemory(c.job((c.rank+1)%c.size), b, true)
	if err == nil {
		h.mem, h.by = b, by
	}
	return key, false, err
}

// leave takes it back.
func (h *hold) leave(c *Comm) {
	if h.by != nil {
		c.eng.Fabric().DeregisterMemory(h.by)
		*h = hold{}
	}
}

// expose has the others write to b in the next call. The caller has the engine's
// lock.
func (l *lane) expose(b []byte) (known bool, err error) {
	if l.broken != nil {
		return false, l.broken
	}
	key, known, err := l.mine.take(l.comm, b)
	if err == nil && !known {
		key.ID = uint64(l.number)
		key.MarshalTo(l.address[:envelope.KeySize])
		binary.LittleEndian.PutUint64(l.address[envelope.KeySize:], uint64(len(b)))
	}
	return known, err
}

// fail ends the use of a lane after a call that has failed.
func (l *lane) fail(err error) {
	if l.broken == nil {
		l.broken = fmt.Errorf("an alltoall of %s has failed before: %w", l.comm.Name(), err)
	}
}

// place is memory of another rank.
type place struct {
	key envelope.Key // ID is the number of its lane, 0 if nothing is known
	len uint64       // bytes
}

var errAddress = errors.New("no address of memory")

// learn takes note of where a rank's memory is.
func (l *lane) learn(rank int, a coll.Address) error {
	p := place{len: binary.LittleEndian.Uint64(a[envelope.KeySize:])}
	if err := p.key.Unmarshal(a[:envelope.KeySize]); err != nil {
		return err
	}
	if p.key.ID == 0 || p.key.ID != uint64(uint32(p.key.ID)) {
		return errAddress
	}
	l.theirs[rank] = p
	return nil
}

// to is where to write to a rank, off bytes behind the beginning.
func (l *lane) to(rank, off int) (envelope.Key, error) {
	p := l.theirs[rank]
	switch {
	case p.key.ID == 0:
		return p.key, fmt.Errorf("%w of rank %d", errAddress, rank)
	case p.len != uint64(len(l.mine.mem)):
		return p.key, fmt.Errorf("%w: rank %d receives %d bytes, and rank %d %d", ErrMismatch, rank, p.len, l.comm.rank, len(l.mine.mem))
	}
	p.key.Addr += uint64(off)
	return p.key, nil
}
