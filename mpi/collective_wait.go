package mpi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/sched"
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// boardCall is the communicator's board during one call. It implements coll.Board.
type boardCall struct {
	net    *callNet
	board  *shm.Board // nil: there is none
	opened bool       // whether there is one
}

// boardEvent is what a rank waits for of another.
type boardEvent uint8

const (
	eventShown boardEvent = iota // it has shown something in this round
	eventFreed                   // it looks no more at what we have shown two rounds before
)

// BeginRound implements coll.Board.
func (b *boardCall) BeginRound() ([]byte, error) {
	if err := b.net.comm.sharedMemory.err; err != nil {
		return nil, err
	}
	b.board.BeginRound(b.net.call.round)
	for r := range b.net.comm.size {
		if err := b.waitEvent(r, eventFreed); err != nil {
			return nil, err
		}
	}
	return b.board.Slot(b.net.comm.rank), nil
}

// Show implements coll.Board.
func (b *boardCall) Show(sign uint64) error {
	b.board.Show(sign)
	return b.wakeSleepers()
}

// WaitShown implements coll.Board.
func (b *boardCall) WaitShown(rank int) (place []byte, sign uint64, err error) {
	if err := b.waitEvent(rank, eventShown); err != nil {
		return nil, 0, err
	}
	if err := b.compareSignature(rank); err != nil {
		return nil, 0, err
	}
	return b.board.Slot(rank), b.board.Sign(rank), nil
}

// EndRound implements coll.Board. Of two ranks that make calls that do not belong together,
// and do not look at each other, the one that comes later finds out here.
func (b *boardCall) EndRound() error {
	bad := &b.net.call.disagreement
	for r := 0; r < b.net.comm.size && bad.Load() == nil; r++ {
		if b.board.HasShown(r) {
			_ = b.compareSignature(r) // which call.execute returns
		}
	}
	b.board.EndRound()
	if err := b.wakeSleepers(); err != nil && bad.Load() == nil {
		return err
	}
	return nil
}

// compareSignature compares what we have shown with what a rank shows.
func (b *boardCall) compareSignature(rank int) error {
	k := b.net.call
	theirs, ok := b.board.SignInRound(rank, k.round)
	if k.signature == 0 || ok && callSignature(theirs).matches(k.signature) {
		return nil
	}
	c := b.net.comm
	if !ok { // it knows why, and all are told
		ctx, cancel := context.WithTimeout(context.Background(), disagreementTimeout)
		_ = c.eng.Wait(ctx, disagreementWait{k})
		cancel()
	}
	if bad := k.disagreement.Load(); bad != nil {
		return bad
	}
	d := &disagreement{Number: uint32(b.net.tag) & maxSeq, Rank: uint32(rank), Other: uint32(c.rank), Sign: callSignature(theirs), Theirs: k.signature, Sends: -1}
	c.eng.Do(func(core *protocol.Core) { c.reportDisagreement(core, d) })
	return d
}

// disagreementTimeout is the time that a rank waits to be told of the disagreement in its call, which
// another rank has left out for it.
const disagreementTimeout = time.Second

// disagreementWait is the condition of that wait.
type disagreementWait struct{ *call }

// Ready implements engine.Waitable.
func (d disagreementWait) Ready() bool { return d.disagreement.Load() != nil }

// hasHappened reports whether what we wait for has come.
func (b *boardCall) hasHappened(rank int, e boardEvent) bool {
	if e == eventShown {
		return b.board.HasShown(rank)
	}
	return b.board.IsFree(rank)
}

// How a rank waits for another: it gives the processor away and looks again, since most
// often the other one is about to come, or wants this processor for it; then it sleeps
// as all who wait for messages do, and the other one sends it one.
const (
	// It looks for so long, and so often where each look takes a turn of others.
	minSpinTime = 100 * time.Microsecond
	minSpins    = 64
	// But it does not look for longer than this in all,
	maxSpinTime = 5 * time.Millisecond
	// nor beside a thread that computes: one that has kept the processor for so long.
	descheduledTime = 2 * time.Millisecond
	// After so many looks, and so many calls, it has one at the network, where others may
	// wait for us.
	spinsPerPoll = 16
)

// waitEvent waits for an event of a rank.
func (b *boardCall) waitEvent(rank int, e boardEvent) error {
	if b.hasHappened(rank, e) {
		return nil
	}
	began := time.Now()
	for i, last := 1, began; ; i++ {
		if i%spinsPerPoll == 0 {
			runtime.Gosched()
			b.net.comm.eng.PollOnce()
		}
		sched.Yield()
		if b.hasHappened(rank, e) {
			return nil
		}
		if bad := b.net.call.disagreement.Load(); bad != nil {
			return bad
		}
		now := time.Now()
		passed, away := now.Sub(began), now.Sub(last)
		if last = now; i >= minSpins && passed >= minSpinTime || passed >= maxSpinTime || away >= descheduledTime {
			break
		}
	}
	for !b.hasHappened(rank, e) {
		if err := b.sleepForEvent(rank, e); err != nil {
			if !errors.Is(err, ErrMismatch) {
				b.net.comm.sharedMemory.err = fmt.Errorf("a call of %s has failed before: %w", b.net.comm.Name(), err)
			}
			return err
		}
	}
	return nil
}

// wakeTag is that of the messages that wake. No call has it, nor a group, whose tags end
// below.
const wakeTag = groupTag | 1<<28

// sleepForEvent waits for the message of a rank that has shown something, or is done.
func (b *boardCall) sleepForEvent(rank int, e boardEvent) error {
	if !b.board.PrepareSleep(rank, func() bool { return b.hasHappened(rank, e) }) {
		return nil
	}
	defer b.board.EndSleep()
	return b.net.Wait(b.net.irecvTagged(rank, nil, wakeTag))
}

// wakeSleepers sends those who sleep for us what they wait for.
func (b *boardCall) wakeSleepers() error {
	var calls []coll.Request
	for r := b.board.NextSleeper(); r >= 0; r = b.board.NextSleeper() {
		calls = append(calls, b.net.isendTagged(r, nil, wakeTag))
	}
	if calls == nil {
		return nil
	}
	return b.net.Wait(calls...)
}
