package mpi

import (
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Carried implements coll.Carrier.
func (n *net) Carried() coll.Carried {
	w := n.c.world
	if w.eng.Fabric() == nil {
		return 0
	}
	return w.o.carried(w.Size())
}

// Places implements coll.Placer.
func (n *net) Places() bool {
	if n.lane == nil {
		n.lane = n.call.openLane()
	}
	return n.lane != nil
}

// Expose implements coll.Placer.
func (n *net) Expose(b []byte) (a coll.Address, known bool, err error) {
	if _, err = n.c.eng.Lock(); err != nil {
		return a, false, err
	}
	defer n.c.eng.Unlock()
	known, err = n.lane.expose(b)
	return n.lane.address, known, err
}

// Pin implements coll.Placer.
func (n *net) Pin(b []byte) (err error) {
	if _, err = n.c.eng.Lock(); err != nil {
		return err
	}
	defer n.c.eng.Unlock()
	_, _, err = n.lane.pinned.take(n.c, b)
	return err
}

// Learn implements coll.Placer.
func (n *net) Learn(rank int, a coll.Address) error { return n.lane.learn(rank, a) }

// Place implements coll.Placer.
func (n *net) Place(to, off int, b []byte) coll.Request {
	m := n.message()
	key, err := n.lane.to(to, off)
	if err != nil {
		m.err = err
		return m
	}
	core, err := n.c.eng.Lock()
	if err != nil {
		m.err = err
		return m
	}
	m.p.Dest, m.p.Buf = n.c.job(to), b
	core.PutNotify(&m.p, key, uint32(key.ID))
	n.c.eng.Unlock()
	return m
}

// Placed implements coll.Placer.
func (n *net) Placed(from int) coll.Request {
	m := n.message()
	m.placed = from + 1
	return m
}

// openLane is the lane of a call, nil if ranks cannot write into each other's memory.
func (k *call) openLane() *lane {
	c := k.comm
	if _, ok := c.eng.Fabric().(protocol.Notifier); !ok || !k.op.exchanges() {
		return nil
	}
	var l *lane
	switch k.op.form {
	case blocking:
		l = c.lanes.last(&c.lanes.blocking, c)
	case kept:
		if k.kept == nil {
			k.kept = c.world.lanes.add(c)
		}
		l = k.kept
	default:
		l = c.world.lanes.add(c)
		l.single = true
	}
	l.calls.Lock()
	return l
}

// exchanges reports whether a call is one that lanes are for.
func (o *operation) exchanges() bool { return o.what == coll.Alltoall && o.cart == nil }

// closeLane is the end of a call. Of one that has failed in the background the lane
// stays: who does not know yet may still write to the memory.
func (k *call) closeLane(err error) {
	l := k.net.lane
	if l == nil {
		return
	}
	k.net.lane = nil
	if err != nil {
		k.comm.eng.Do(func(*protocol.Core) { l.fail(err) })
	}
	l.calls.Unlock()
	if l.single && err == nil {
		k.comm.world.lanes.end(l)
	}
}
