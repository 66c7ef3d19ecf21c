package mpi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/thread"
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// onBoard is the communicator's board during one call. It implements coll.Board.
type onBoard struct {
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

// Begin implements coll.Board.
func (b *onBoard) Begin() ([]byte, error) {
	if err := b.n.c.sharing.err; err != nil {
		return nil, err
	}
	b.on.BeginRound(b.n.call.round)
	for r := range b.n.c.size {
		if err := b.await(r, freed); err != nil {
			return nil, err
		}
	}
	return b.on.Place(b.n.c.rank), nil
}

// Show implements coll.Board.
func (b *onBoard) Show(sign uint64) error {
	b.on.Show(sign)
	return b.wake()
}

// See implements coll.Board.
func (b *onBoard) See(rank int) (place []byte, sign uint64, err error) {
	if err := b.await(rank, shown); err != nil {
		return nil, 0, err
	}
	if err := b.compare(rank); err != nil {
		return nil, 0, err
	}
	return b.on.Place(rank), b.on.Sign(rank), nil
}

// Done implements coll.Board. Of two ranks that make calls that do not belong together,
// and do not look at each other, the one that comes later finds out here.
func (b *onBoard) Done() error {
	bad := &b.n.call.bad
	for r := 0; r < b.n.c.size && bad.Load() == nil; r++ {
		if b.on.Shown(r) {
			_ = b.compare(r) // which call.again returns
		}
	}
	b.on.Done()
	if err := b.wake(); err != nil && bad.Load() == nil {
		return err
	}
	return nil
}

// compare compares what we have shown with what a rank shows.
func (b *onBoard) compare(rank int) error {
	k := b.n.call
	theirs, ok := b.on.SignOf(rank, k.round)
	if k.sign == 0 || ok && callSign(theirs).agrees(k.sign) {
		return nil
	}
	c := b.n.c
	if !ok { // it knows why, and all are told
		ctx, cancel := context.WithTimeout(context.Background(), wordTime)
		_ = c.eng.Wait(ctx, disagreed{k})
		cancel()
	}
	if bad := k.bad.Load(); bad != nil {
		return bad
	}
	d := &disagreement{Number: uint32(b.n.tag) & maxSeq, Rank: uint32(rank), Other: uint32(c.rank), Sign: callSign(theirs), Theirs: k.sign, Sends: -1}
	c.eng.Do(func(core *protocol.Core) { c.disagree(core, d) })
	return d
}

// wordTime is the time that a rank waits to be told of the disagreement in its call, which
// another rank has left out for it.
const wordTime = time.Second

// disagreed is the condition of that wait.
type disagreed struct{ *call }

// Ready implements engine.Waitable.
func (d disagreed) Ready() bool { return d.bad.Load() != nil }

// there reports whether what we wait for has come.
func (b *onBoard) there(rank int, e event) bool {
	if e == shown {
		return b.on.Shown(rank)
	}
	return b.on.Free(rank)
}

// How a rank waits for another: it gives the processor away and looks again, since most
// often the other one is about to come, or wants this processor for it; then it sleeps
// as all who wait for messages do, and the other one sends it one.
const (
	// It looks for so long, and so often where each look takes a turn of others.
	looking = 100 * time.Microsecond
	looks   = 64
	// But it does not look for longer than this in all,
	longest = 5 * time.Millisecond
	// nor beside a thread that computes: one that has kept the processor for so long.
	computed = 2 * time.Millisecond
	// After so many looks, and so many calls, it has one at the network, where others may
	// wait for us.
	glances = 16
)

// await waits for an event of a rank.
func (b *onBoard) await(rank int, e event) error {
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
		if bad := b.n.call.bad.Load(); bad != nil {
			return bad
		}
		now := time.Now()
		passed, away := now.Sub(began), now.Sub(last)
		if last = now; i >= looks && passed >= looking || passed >= longest || away >= computed {
			break
		}
	}
	for !b.there(rank, e) {
		if err := b.sleep(rank, e); err != nil {
			if !errors.Is(err, ErrMismatch) {
				b.n.c.sharing.err = fmt.Errorf("a call of %s has failed before: %w", b.n.c.Name(), err)
			}
			return err
		}
	}
	return nil
}

// wakeTag is that of the messages that wake. No call has it, nor a group, whose tags end
// below.
const wakeTag = groupTag | 1<<28

// sleep waits for the message of a rank that has shown something, or is done.
func (b *onBoard) sleep(rank int, e event) error {
	if !b.on.Sleep(rank, func() bool { return b.there(rank, e) }) {
		return nil
	}
	defer b.on.Awake()
	return b.n.Wait(b.n.receive(rank, nil, wakeTag))
}

// wake sends those who sleep for us what they wait for.
func (b *onBoard) wake() error {
	var calls []coll.Request
	for r := b.on.Call(); r >= 0; r = b.on.Call() {
		calls = append(calls, b.n.send(r, nil, wakeTag))
	}
	if calls == nil {
		return nil
	}
	return b.n.Wait(calls...)
}
