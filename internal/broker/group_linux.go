package broker

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/link"
)

// A group is the share of this process in an address: the sockets, the table, and the
// goroutines that serve other processes.
type group struct {
	addr    netip.AddrPort
	sockets [Slots]int
	table   *table

	members int // guarded by groups.mu

	mu      sync.Mutex
	conns   map[*net.UnixConn]struct{}
	done    chan struct{} // closed when the last member has left
	running sync.WaitGroup
}

// groups are the groups of this process.
var groups struct {
	mu   sync.Mutex
	list map[netip.AddrPort]*group
}

// enterGroup returns the group of an address, with one more member.
func enterGroup(addr netip.AddrPort) (*group, error) {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if g := groups.list[addr]; g != nil {
		g.members++
		return g, nil
	}
	g := &group{addr: addr, members: 1, conns: make(map[*net.UnixConn]struct{}), done: make(chan struct{})}
	if err := g.openSockets(); err != nil {
		return nil, err
	}
	if groups.list == nil {
		groups.list = make(map[netip.AddrPort]*group)
	}
	groups.list[addr] = g
	w := g.startWatch()
	g.running.Go(func() { g.watchAddress(w) })
	return g, nil
}

// leaveGroup removes a member, and closes the group with the last one.
func (g *group) leaveGroup() {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if g.members--; g.members > 0 {
		return
	}
	delete(groups.list, g.addr)
	g.mu.Lock()
	close(g.done)
	for c := range g.conns {
		c.Close()
	}
	g.mu.Unlock()
	g.running.Wait()
	closeAll(g.sockets[:])
	g.table.close()
}

// openTimeout bounds the search for a process that hands out the sockets of an address that is
// in use: the first process may be about to bind them, or the only one busy.
const openTimeout = 2 * time.Second

// openSockets gets the sockets and the table from another process, or makes them.
func (g *group) openSockets() error {
	deadline := time.Now().Add(openTimeout)
	for delay := time.Millisecond; ; delay = min(2*delay, 50*time.Millisecond) {
		fds, refusal := g.requestSockets()
		if fds != nil {
			return g.adoptSockets(fds)
		}
		err := g.createSockets()
		if err == nil {
			return nil
		}
		if isFinal(refusal) && link.IsAddrInUse(err) {
			return refusal
		}
		if !link.IsAddrInUse(err) {
			return err
		}
		if time.Now().After(deadline) {
			return errInUse(err, refusal)
		}
		time.Sleep(delay)
	}
}

// requestSockets requests the sockets from the processes of the address, one after the other.
// The error, if any, is of one that has not handed them out. Another user may hold some of the
// names.
func (g *group) requestSockets() (fds []int, refusal error) {
	for slot := brokerName; slot < Slots; slot++ {
		fds, err := g.requestFrom(slot)
		if err == nil {
			return fds, nil
		}
		if !errors.Is(err, unix.ECONNREFUSED) && !isFinal(refusal) {
			refusal = err
		}
	}
	return nil, refusal
}

// errInUse returns the error for an address whose sockets nobody hands out: the refusal of its
// processes, or else that of the system, with its advice. Both satisfy link.IsAddrInUse.
func errInUse(bind, refusal error) error {
	if refusal == nil {
		return bind
	}
	return fmt.Errorf("%w: %w", refusal, unix.EADDRINUSE)
}

// isFinal reports whether a refusal does not change with time.
func isFinal(refusal error) bool {
	return errors.Is(refusal, ErrForeign) || errors.Is(refusal, ErrVersion)
}

// adoptSockets makes the group of descriptors that another process has handed out.
func (g *group) adoptSockets(fds []int) (err error) {
	copy(g.sockets[:], fds)
	if g.table, err = mapTable(fds[Slots]); err != nil {
		closeAll(g.sockets[:])
	}
	return err
}

// createSockets binds the sockets and makes an empty table.
func (g *group) createSockets() error {
	fds, err := link.BindShared(g.addr, Slots)
	if err != nil {
		return err
	}
	copy(g.sockets[:], fds)
	if g.table, err = newTable(); err != nil {
		closeAll(fds)
		return err
	}
	if err := g.update(func(*table) error { return nil }); err != nil {
		closeAll(fds)
		g.table.close()
		return err
	}
	return nil
}

// update changes the table and then the program in the kernel, with the table locked.
func (g *group) update(change func(*table) error) error {
	if err := g.table.lock(); err != nil {
		return err
	}
	defer g.table.unlock()
	if err := change(g.table); err != nil {
		return err
	}
	return attachFilter(g.sockets[0], g.table)
}

// releaseSlot takes a slot and its services out of the table, disconnects its connections and
// drops its packets.
func (g *group) releaseSlot(t *table, slot int) {
	g.disconnectAll(slot, t.connsOf(slot))
	t.clearSlot(slot)
	link.ShrinkBuffer(g.sockets[slot])
	drainSocket(g.sockets[slot])
}

// maxDrain bounds the datagrams that drainSocket drops while more arrive. The receive buffer
// has fewer.
const maxDrain = 1 << 16

// drainSocket drops the packets and errors in a socket.
func drainSocket(fd int) {
	var b [1]byte
	for _, flags := range []int{unix.MSG_DONTWAIT, unix.MSG_DONTWAIT | unix.MSG_ERRQUEUE} {
		for range maxDrain {
			_, _, err := unix.Recvfrom(fd, b[:], flags)
			if err == unix.EAGAIN {
				break
			}
		}
	}
}
