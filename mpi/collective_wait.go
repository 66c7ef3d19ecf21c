package mpi

import (
	"fmt"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/thread"
	"github.com/softrnic/softrnic/mpi/coll"
	"github.com/softrnic/softrnic/mpi/shm"
)

// board is the communicator's board during one call. It implements coll.Board.
type board struct {
	n     *net
	on    *shm.Board // nil: there is none
	asked bool       // whether there is one
}

// event is what a rank waits for of another.
type event uint8

const (
	shown event = iota // it has shown something in this round
	freed              // it looks no more at what we have shown two rounds before
)

// Room implements coll.Board.
func (b *board) Room() int { return b.on.Room() }

// Begin implements coll.Board.
func (b *board) Begin() ([]byte, error) {
	if err := b.n.c.sharing.err; err != nil {
		return nil, err
	}
	b.on.Begin()
	for r := range b.n.c.size {
		if err := b.await(r, freed); err != nil {
			return nil, err
		}
	}
	return b.on.Place(b.n.c.rank), nil
}

// Show implements coll.Board.
func (b *board) Show(sign uint64) error {
	b.on.Show(sign)
	return b.wake()
}

// See implements coll.Board.
func (b *board) See(rank int) (place []byte, sign uint64, err error) {
	if err := b.await(rank, shown); err != nil {
		return nil, 0, err
	}
	return b.on.Place(rank), b.on.Sign(rank), nil
}

// Done implements coll.Board.
func (b *board) Done() error {
	b.on.Done()
	return b.wake()
}

// there reports whether what we wait for has come.
func (b *board) there(rank int, e event) bool {
	if e == shown {
		return b.on.Shown(rank)
	}
	return b.on.Free(rank)
}

// How a rank waits for another: it gives the processor away and looks again, since most
// often the other one is about to come, or wants this processor for it; then it sleeps
// as all who wait for messages do, and the other one sends it one.
const (
	looking  = 100 * time.Microsecond // at least, and
	looks    = 64                     // at least, but
	longest  = 5 * time.Millisecond   // at most, and not
	computed = 2 * time.Millisecond   // when somebody else has kept the processor for so long
	glances  = 16                     // looks until the next one at the network, where others may wait for us
)

// await waits for an event of a rank.
func (b *board) await(rank int, e event) error {
	if b.there(rank, e) {
		return nil
	}
	began := time.Now()
	for i, last := 1, began; ; i++ {
		if i%glances == 0 {
			runtime.Gosched()
			b.n.c.eng.Glance()
		}
		thread.Yield()
		if b.there(rank, e) {
			return nil
		}
		now := time.Now()
		passed, away := now.Sub(began), now.Sub(last)
		if last = now; i >= looks && passed >= looking || passed >= longest || away >= computed {
			break
		}
	}
	for !b.there(rank, e) {
		if err := b.sleep(rank, e); err != nil {
			b.n.c.sharing.err = fmt.Errorf("a call of %s has failed before: %w", b.n.c.Name(), err)
			return err
		}
	}
	return nil
}

// wakeTag is that of the messages that wake. No call has it.
const wakeTag = checkTag | keptTag

// sleep waits for the message of a rank that has shown something, or is done.
func (b *board) sleep(rank int, e event) error {
	if !b.on.Sleep(rank, func() bool { return b.there(rank, e) }) {
		return nil
	}
	defer b.on.Awake()
	return b.n.Wait(b.n.receive(rank, nil, wakeTag))
}

// wake sends those who sleep for us what they wait for.
func (b *board) wake() error {
	var calls []coll.Request
	for r := b.on.Call(); r >= 0; r = b.on.Call() {
		calls = append(calls, b.n.send(r, nil, wakeTag))
	}
	if calls == nil {
		return nil
	}
	return b.n.Wait(calls...)
}
