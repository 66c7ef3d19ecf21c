package rnic

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// groupTable are the multicast groups that queue pairs of a device have joined,
// by address.
type groupTable struct {
	mu   sync.Mutex
	list map[netip.Addr]*group
}

// A group is one multicast group: a socket of its own, because the device's is
// bound to one address, and a goroutine that reads it.
type group struct {
	conn    link.Conn
	mu      sync.Mutex
	members []*queuePair
	done    chan struct{}
}

// AttachMcast implements verbs.QP. The group's packets arrive by UDP multicast
// on the interface of the device's address, on port 4791.
func (q *queuePair) AttachMcast(g verbs.GID) error {
	const op = "attach multicast"
	refuse := func(err error, format string, args ...any) error {
		return &verbs.OpError{Op: op, Object: q.core.String(), Err: err, Detail: fmt.Sprintf(format, args...)}
	}
	addr := g.Addr()
	switch {
	case q.Type() != verbs.UD:
		return refuse(verbs.ErrUnsupported, "only UD queue pairs receive multicasts")
	case !addr.IsMulticast():
		return refuse(verbs.ErrInvalid, "%v is not a multicast group", addr)
	case addr.Is4() != q.dev.addr.Addr().Is4():
		return refuse(verbs.ErrUnsupported, "group %v is an %s address and the device is at %v; open the device on an %[2]s address",
			addr, familyName(addr), q.dev.addr.Addr())
	}
	q.dev.groups.mu.Lock()
	defer q.dev.groups.mu.Unlock()
	q.shard.mu.Lock()
	err := q.checkUsable(op)
	q.shard.mu.Unlock()
	if err != nil {
		return err
	}
	gr := q.dev.groups.list[addr]
	if gr == nil {
		if len(q.dev.groups.list) >= maxMcastGrp {
			return refuse(verbs.ErrLimit, "the device has joined %d groups", maxMcastGrp)
		}
		conn, err := link.OpenMulticast(link.Options{Addr: q.dev.addr}, netip.AddrPortFrom(addr, roceUDPPort))
		if err != nil {
			return refuse(err, "joining %v", addr)
		}
		gr = &group{conn: conn, done: make(chan struct{})}
		if q.dev.groups.list == nil {
			q.dev.groups.list = make(map[netip.Addr]*group)
		}
		q.dev.groups.list[addr] = gr
		go gr.receiveLoop(q.dev)
	}
	gr.mu.Lock()
	defer gr.mu.Unlock()
	if !slices.Contains(gr.members, q) {
		gr.members = append(gr.members, q)
	}
	return nil
}

// DetachMcast implements verbs.QP. Detaching the last member closes the socket.
func (q *queuePair) DetachMcast(g verbs.GID) error {
	addr := g.Addr()
	q.dev.groups.mu.Lock()
	gr := q.dev.groups.list[addr]
	if gr == nil || !gr.removeMember(q) {
		q.dev.groups.mu.Unlock()
		return &verbs.OpError{Op: "detach multicast", Object: q.core.String(), Err: verbs.ErrInvalid,
			Detail: fmt.Sprintf("queue pair is not attached to %v", addr)}
	}
	empty := q.dev.groups.removeIfEmpty(addr, gr)
	q.dev.groups.mu.Unlock()
	if empty {
		return gr.close()
	}
	return nil
}

// detachAll detaches a closed queue pair from every group.
func (g *groupTable) detachAll(q *queuePair) {
	g.mu.Lock()
	var closing []*group
	for addr, gr := range g.list {
		if gr.removeMember(q) && g.removeIfEmpty(addr, gr) {
			closing = append(closing, gr)
		}
	}
	g.mu.Unlock()
	for _, gr := range closing {
		gr.close()
	}
}

// close closes all groups.
func (g *groupTable) close() {
	g.mu.Lock()
	list := g.list
	g.list = nil
	g.mu.Unlock()
	for _, gr := range list {
		gr.close()
	}
}

// removeIfEmpty removes a group without members. g.mu is held.
func (g *groupTable) removeIfEmpty(addr netip.Addr, gr *group) bool {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	if len(gr.members) > 0 {
		return false
	}
	delete(g.list, addr)
	return true
}

func (gr *group) removeMember(q *queuePair) bool {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	i := slices.Index(gr.members, q)
	if i < 0 {
		return false
	}
	gr.members = slices.Delete(gr.members, i, i+1)
	return true
}

// close closes the socket and waits for the group's goroutine.
func (gr *group) close() error {
	err := gr.conn.Close()
	<-gr.done
	return err
}

// receiveLoop reads the group's socket until it is closed. A failure of the
// socket is a failure of the device's link.
func (gr *group) receiveLoop(d *Device) {
	defer close(gr.done)
	rx := link.NewDatagrams(1)
	flows := flowCache{local: gr.conn.LocalAddr()}
	for {
		_, err := gr.conn.Wait(-1)
		if err == nil {
			_, err = gr.conn.ReadBatch(rx)
		}
		if err != nil {
			d.linkFailed(err)
			return
		}
		for i := range rx.Msgs() {
			gr.handleDatagram(d, &rx.Msgs()[i], &flows)
		}
	}
}

// handleDatagram passes each packet to every member.
func (gr *group) handleDatagram(d *Device, dg *link.Datagram, flows *flowCache) {
	p := wire.Packet{Src: dg.Src, Dst: flows.local, TOS: dg.TOS}
	for i := range dg.Count() {
		raw := dg.Packet(i)
		if drop := p.Parse(raw); drop != wire.DropNone {
			d.drops.count(drop)
			continue
		}
		if flows.get(dg.Src).checkICRC(raw, uint16(i)) == wire.ICRCBad {
			d.drops.count(wire.DropBadICRC)
			continue
		}
		if p.BTH.DestQPN != wire.QPNMulticast {
			d.drops.count(wire.DropNotAttached)
			continue
		}
		gr.mu.Lock()
		for _, q := range gr.members {
			q.handleMulticast(&p)
		}
		gr.mu.Unlock()
		d.emitLogs()
	}
}

// handleMulticast handles a packet that arrived through a group.
func (q *queuePair) handleMulticast(p *wire.Packet) {
	s := q.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.closed || q.dev.unusable.Load() {
		return
	}
	now := q.dev.now()
	if drop := q.core.HandlePacket(now, p); drop != wire.DropNone {
		q.dev.drops.count(drop)
	}
	s.drainQP(q, now) // handles an overrun or failure, too
	s.flush()
}
