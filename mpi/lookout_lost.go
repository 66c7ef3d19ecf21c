package mpi

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi/engine"
	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/hang"
	"github.com/softrnic/softrnic/mpi/protocol"
)

// Who waits for a message sends nothing, and would not notice that its sender is gone.
// So those who are waited for are sent a packet now and then: their adapter, or system,
// has to acknowledge it, or the connection breaks. That is so also of a rank that
// computes.
//
// A rank that is gone is also the end of those who wait for somebody who has given up
// because of it. So who is asked for a sign of life tells in return which ranks it has
// lost, and those who have asked are told of new ones at once. Whoever hears of a lost
// rank cuts it off as well, so that all agree about it sooner or later.

// lostRank is a rank that is lost.
type lostRank struct {
	rank    int
	witness int // who has found out
	why     string
}

const (
	maxSigns = 32  // that are asked for at a time, by one who waits for any of many
	maxWhy   = 200 // bytes of a reason
)

// ask asks those that a call waits for for a sign of life: soon, and then less and less
// often.
func (l *lookout) ask(core *protocol.Core, x *watched, waits engine.Waitable, c hang.Call, now time.Time) {
	h, payload := envelope.Header{Tag: packetSign}, []byte(nil)
	if n, ok := waits.(*net); ok && n.sign() != 0 && n.c.tag == 0 {
		h.ID, payload = uint64(n.c.id), n.call.probe()
	}
	for range min(len(c.For), maxSigns) {
		rank := c.For[x.next%len(c.For)]
		if x.next++; rank != l.w.eng.Rank() && core.Backlog(rank) == 0 {
			l.tell(core, rank, h, payload)
		}
	}
	x.asked = now
	if x.next >= len(c.For) { // all of them
		x.next = 0
		x.pause = min(2*x.pause, l.w.o.maxPause())
	}
}

// sign is called when a rank that waits for us wants a sign of life.
func (l *lookout) sign(core *protocol.Core, from int) {
	l.waiters[from] += 0
	l.inform(core, from)
}

// gone is called when a rank is lost.
func (l *lookout) gone(core *protocol.Core, rank int) {
	delete(l.waiters, rank)
	l.dropUnconfirmed(core, rank)
	if d := (*departure)(nil); l.ended || errors.As(core.LostBecause(rank), &d) && d.mismatch { // which tells all others itself
		return
	}
	x, heard := l.heard[rank]
	if !heard {
		why := ""
		if lost := (*protocol.LostError)(nil); errors.As(core.LostBecause(rank), &lost) {
			why = lost.Why.Error()
		}
		x = lostRank{rank, l.w.eng.Rank(), why[:min(len(why), maxWhy)]}
	}
	l.lost = append(l.lost, x)
	for waiter := range l.waiters {
		l.inform(core, waiter)
	}
}

// inform tells a rank of those that are lost, each once.
func (l *lookout) inform(core *protocol.Core, to int) {
	for ; l.waiters[to] < len(l.lost); l.waiters[to]++ {
		x := l.lost[l.waiters[to]]
		if x.rank == to {
			continue
		}
		why := x.why
		if fab := l.w.eng.Fabric(); fab != nil {
			why = why[:min(len(why), fab.Limits(to).Eager)]
		}
		l.tell(core, to, envelope.Header{Tag: packetLost, ID: uint64(x.rank), Length: uint64(x.witness)}, []byte(why))
	}
}

// told is called when a rank says that it has lost one.
func (l *lookout) told(from int, rank, witness uint64, why []byte) error {
	e := l.w.eng
	switch size := uint64(e.Size()); {
	case rank >= size || witness >= size || int(rank) == from:
		return fmt.Errorf("%w: rank %d has lost rank %d", protocol.ErrProtocol, witness, rank)
	case int(rank) == e.Rank():
		return errors.New("it has lost us")
	case e.Core().LostBecause(int(rank)) == nil:
		text := strings.ToValidUTF8(string(why[:min(len(why), maxWhy)]), "?")
		l.heard[int(rank)] = lostRank{int(rank), int(witness), text}
		e.Fabric().Cut(int(rank), fmt.Errorf("as rank %d says: %s", witness, text))
	}
	return nil
}
