package broker

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"sync/atomic"
	"unsafe"
)

// The table has the connections of each slot as well, so that another process can end them for a
// process that was killed. Only the process of the slot changes them while it lives, so it needs
// no lock, and traffic is not involved.
//
//	0  our communication ID, 0 for a free record     12  UDP port of the peer's adapter
//	4  the peer's communication ID                   16  its address, 16 bytes
//	8  the peer's queue pair number
//
// They follow the services: the number of records that each slot has used, and the records, whose
// pages take no memory until then.
const (
	connCountsOffset = servicesOffset + maxServices*serviceBytes
	connsOffset      = connCountsOffset + 4*Slots
	connBytes        = 32
	maxConns         = 2048 // of a slot; further ones are not recorded
	tableBytes       = connsOffset + Slots*maxConns*connBytes
)

// A conn is a connection of a slot.
type conn struct {
	id, remoteID, remoteQPN uint32
	peer                    netip.AddrPort // adapter
}

// connRecord returns the bytes of a record.
func (t *table) connRecord(slot, i int) []byte {
	return t.mem[connsOffset+(slot*maxConns+i)*connBytes:][:connBytes]
}

// tableWord returns an aligned word of the table.
func (t *table) tableWord(offset int) *uint32 { return (*uint32)(unsafe.Pointer(&t.mem[offset])) }

func (t *table) connCount(slot int) *uint32 { return t.tableWord(connCountsOffset + 4*slot) }

// connID returns the word of a record that makes it valid.
func (t *table) connID(slot, i int) *uint32 {
	return t.tableWord(connsOffset + (slot*maxConns+i)*connBytes)
}

// putConn writes a record. Its process may be killed at any moment, so that the ID is last.
func (t *table) putConn(slot, i int, c conn) {
	b, addr := t.connRecord(slot, i), c.peer.Addr().As16()
	binary.NativeEndian.PutUint32(b[4:], c.remoteID)
	binary.NativeEndian.PutUint32(b[8:], c.remoteQPN)
	binary.NativeEndian.PutUint16(b[12:], c.peer.Port())
	copy(b[16:], addr[:])
	if used := t.connCount(slot); atomic.LoadUint32(used) <= uint32(i) {
		atomic.StoreUint32(used, uint32(i)+1)
	}
	atomic.StoreUint32(t.connID(slot, i), c.id)
}

// connsOf returns the connections of a slot.
func (t *table) connsOf(slot int) (list []conn) {
	for i := range min(int(*t.connCount(slot)), maxConns) {
		id := atomic.LoadUint32(t.connID(slot, i))
		if id == 0 {
			continue
		}
		b := t.connRecord(slot, i)
		addr := netip.AddrFrom16([16]byte(b[16:])).Unmap()
		list = append(list, conn{
			id: id, remoteID: binary.NativeEndian.Uint32(b[4:]), remoteQPN: binary.NativeEndian.Uint32(b[8:]),
			peer: netip.AddrPortFrom(addr, binary.NativeEndian.Uint16(b[12:])),
		})
	}
	return list
}

// clearConns removes the connections of a slot.
func (t *table) clearConns(slot int) {
	for i := range min(int(*t.connCount(slot)), maxConns) {
		atomic.StoreUint32(t.connID(slot, i), 0)
	}
	atomic.StoreUint32(t.connCount(slot), 0)
}

// connRecords are the records of a member.
type connRecords struct {
	mu     sync.Mutex
	closed bool
	used   map[uint32]int // by our communication ID
	free   []int
}

// allocRecord returns a record for a connection. ok is false if there is none.
func (r *connRecords) allocRecord(id uint32) (i int, ok bool) {
	if i, ok := r.used[id]; ok {
		return i, true
	}
	if n := len(r.free); n > 0 {
		i, r.free = r.free[n-1], r.free[:n-1]
	} else if i = len(r.used); i == maxConns {
		return 0, false
	}
	if r.used == nil {
		r.used = make(map[uint32]int)
	}
	r.used[id] = i
	return i, true
}

// AddConn records a connection: the two communication IDs, the queue pair number and the adapter
// of the peer. If this process ends without RemoveConn, another process of the address disconnects
// it. Connections beyond 2048 of a device are not recorded.
func (m *Member) AddConn(peer netip.AddrPort, id, remoteID, remoteQPN uint32) {
	m.conns.mu.Lock()
	defer m.conns.mu.Unlock()
	if m.conns.closed {
		return
	}
	if i, ok := m.conns.allocRecord(id); ok {
		m.g.table.putConn(m.slot, i, conn{id, remoteID, remoteQPN, peer})
	}
}

// RemoveConn undoes AddConn. Other IDs are ignored.
func (m *Member) RemoveConn(id uint32) {
	m.conns.mu.Lock()
	defer m.conns.mu.Unlock()
	i, ok := m.conns.used[id]
	if !ok || m.conns.closed {
		return
	}
	delete(m.conns.used, id)
	m.conns.free = append(m.conns.free, i)
	atomic.StoreUint32(m.g.table.connID(m.slot, i), 0)
}

// closeConns stops the changes of the records, before the slot is released.
func (m *Member) closeConns() {
	m.conns.mu.Lock()
	m.conns.closed = true
	m.conns.mu.Unlock()
}
