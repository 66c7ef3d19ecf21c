package mpi

import (
	"errors"
	"fmt"
	"time"

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
	rank int
	why  string
}

const (
	maxPause = 8 * time.Second // between two signs of life of one rank
	maxSigns = 32              // that are asked for at a time, by one who waits for any of many
	maxWhy   = 200             // bytes of a reason
)

// ask asks those that a call waits for for a sign of life: soon, and then less and less
// often.
func (l *lookout) ask(core *protocol.Core, x *watched, c hang.Call, now time.Time) {
	for range min(len(c.For), maxSigns) {
		rank := c.For[x.next%len(c.For)]
		if x.next++; rank != l.w.eng.Rank() && core.Backlog(rank) == 0 {
			l.tell(core, rank, envelope.Header{Tag: packetSign}, nil)
		}
	}
	x.asked = now
	if x.next >= len(c.For) { // all of them
		x.next = 0
		x.pause = min(2*x.pause, maxPause)
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
	if l.ended {
		return
	}
	why := fmt.Sprint(core.LostBecause(rank))
	l.lost = append(l.lost, lostRank{rank, why[:min(len(why), maxWhy)]})
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
		l.tell(core, to, envelope.Header{Tag: packetLost, ID: uint64(x.rank)}, []byte(why))
	}
}

// told is called when a rank says that it has lost one.
func (l *lookout) told(from int, rank uint64, why []byte) error {
	e := l.w.eng
	switch {
	case rank >= uint64(e.Size()) || int(rank) == from:
		return fmt.Errorf("%w: it has lost rank %d", protocol.ErrProtocol, rank)
	case int(rank) == e.Rank():
		return errors.New("it has lost us")
	case e.Core().LostBecause(int(rank)) == nil:
		e.Fabric().Cut(int(rank), fmt.Errorf("says rank %d, where it is: %.*q", from, maxWhy, why))
	}
	return nil
}
