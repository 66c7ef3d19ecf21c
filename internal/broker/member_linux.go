package broker

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"github.com/softrnic/softrnic/internal/link"
)

// A Member is one slot of a shared address. Its methods are safe for concurrent use.
type Member struct {
	g    *group
	slot int
	name net.Listener // holds the slot

	mu       sync.Mutex // is taken before the table's lock; guards the following
	closed   bool
	managers int

	conns connRecords
}

// Join takes a free slot of the address, which becomes a shared one if nobody has it. The
// errors are ErrFull, ErrForeign, ErrVersion, or those of the system: IsAddrInUse of package
// link if the address is in use, and not shared.
func Join(addr netip.AddrPort) (*Member, error) {
	addr = netip.AddrPortFrom(link.NormalizeBind(addr.Addr()), addr.Port())
	g, err := enterGroup(addr)
	if err != nil {
		return nil, &Error{Addr: addr, Op: "join", Err: err}
	}
	m := &Member{g: g}
	err = g.update(m.allocateSlot)
	if err != nil {
		g.leaveGroup()
		return nil, &Error{Addr: addr, Op: "join", Err: err}
	}
	return m, nil
}

// allocateSlot takes the next free slot. Slots of ended processes are free, too; the next one
// is after the last one taken, so that a slot rests as long as possible.
func (m *Member) allocateSlot(t *table) error {
	for range Slots {
		slot := t.nextSlot()
		l, err := m.g.listenName(slot)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return err
		}
		m.g.serveName(l, nil)
		m.g.releaseSlot(t, slot)
		t.markUsed(slot)
		m.slot, m.name = slot, l
		return nil
	}
	return fmt.Errorf("%w: %d devices share the address", ErrFull, Slots)
}

// Slot returns the number of the slot, 0 to 63.
func (m *Member) Slot() int { return m.slot }

// Socket returns the socket of the slot, which is open until Close.
func (m *Member) Socket() int { return m.g.sockets[m.slot] }

// IDPrefix returns the bits that begin all communication IDs of the slot.
func (m *Member) IDPrefix() (prefix uint32, bits int) { return uint32(m.slot) << idShift, SlotBits }

// update changes the table for m, unless m is closed.
func (m *Member) update(op string, change func(t *table) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := error(ErrClosed)
	if !m.closed {
		err = m.g.update(change)
	}
	if err != nil {
		return &Error{Addr: m.g.addr, Op: op, Err: err}
	}
	return nil
}

// AddManager records that the slot has a connection manager. The first slot with one gets the
// requests for services that nobody has registered, and rejects them.
func (m *Member) AddManager() error {
	return m.update("add manager", func(t *table) error {
		m.managers++
		t.setManager(m.slot, true)
		return nil
	})
}

// RemoveManager undoes AddManager.
func (m *Member) RemoveManager() {
	_ = m.update("remove manager", func(t *table) error { // only fails for a closed member
		m.managers--
		t.setManager(m.slot, m.managers > 0)
		return nil
	})
}

// HasManager reports whether another slot has a connection manager.
func (m *Member) HasManager(slot int) bool { return slot != m.slot && m.g.table.hasManager(slot) }

// Register makes requests for a service go to this slot. It reports whether it does: another
// slot may have registered the service. The service ID must have 32 bits.
func (m *Member) Register(service uint64) (ok bool, err error) {
	err = m.update("register service", func(t *table) error {
		if owner, found := t.findService(service); found {
			if owner == m.slot || m.g.isAlive(owner) {
				return nil
			}
			m.g.releaseSlot(t, owner)
		}
		ok = true
		return t.addService(service, m.slot)
	})
	return ok && err == nil, err
}

// Unregister undoes Register.
func (m *Member) Unregister(service uint64) {
	_ = m.update("unregister service", func(t *table) error { // only fails for a closed member
		t.removeService(service, m.slot)
		return nil
	})
}

// Close frees the slot. It is idempotent. The last Close in a process closes its sockets, and
// the last one of all processes frees the address.
func (m *Member) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	m.closeConns()
	err := m.g.update(func(t *table) error {
		m.g.releaseSlot(t, m.slot)
		return nil
	})
	m.name.Close()
	m.g.leaveGroup()
	if err != nil {
		return &Error{Addr: m.g.addr, Op: "close", Err: err}
	}
	return nil
}
