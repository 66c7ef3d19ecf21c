package collective

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/sched"
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// boardCall is the communicator's board during one call. It implements coll.Board.
type boardCall struct {
	net    *callNet
	board  *shm.Board // nil: no shared memory
	opened bool       // openBoard was called
}

// boardEvent is the event of another rank that a rank waits for: a step of this round that it has
// published, or one of these.
type boardEvent int

const (
	eventShown boardEvent = 0  // the rank has published its data of this round
	eventFreed boardEvent = -1 // the rank no longer reads our data of two rounds before
)

// BeginRound implements coll.Board.
func (b *boardCall) BeginRound() ([]byte, error) {
	if err := b.net.comm.Shared.err; err != nil {
		return nil, err
	}
	b.board.BeginRound(b.net.round)
	if !b.board.AreAllFree() {
		for r := range b.net.comm.Size {
			if err := b.waitEvent(r, eventFreed); err != nil {
				return nil, err
			}
		}
	}
	return b.board.Slot(b.net.comm.Rank), nil
}

// Show implements coll.Board.
func (b *boardCall) Show(signature uint64) error {
	b.board.Show(signature)
	return b.wakeSleepers()
}

// WaitShown implements coll.Board.
func (b *boardCall) WaitShown(rank int) (place []byte, signature uint64, err error) {
	if !b.board.HasShown(rank) {
		if err := b.waitEvent(rank, eventShown); err != nil {
			return nil, 0, err
		}
	}
	if signature, err = b.compareSignature(rank); err != nil {
		return nil, 0, err
	}
	return b.board.Slot(rank), signature, nil
}

// Chunk implements coll.Board.
func (b *boardCall) Chunk(rank, k int) []byte { return b.board.Chunk(rank, k) }

// ShowStep implements coll.Board.
func (b *boardCall) ShowStep(step int) error {
	b.board.ShowStep(step)
	return b.wakeSleepers()
}

// WaitStep implements coll.Board.
func (b *boardCall) WaitStep(rank, step int) error { return b.waitEvent(rank, boardEvent(step)) }

// EndRound implements coll.Board. If two ranks make calls that do not match and read nothing from
// each other, the later one finds the mismatch here.
func (b *boardCall) EndRound() error {
	bad := &b.net.mismatch
	if !b.board.HasSeenAll() { // otherwise WaitShown has compared all
		for r := 0; r < b.net.comm.Size && bad.Load() == nil; r++ {
			if b.board.HasShown(r) {
				_, _ = b.compareSignature(r) // execution.executeAlgorithm returns the mismatch
			}
		}
	}
	b.board.EndRound()
	if err := b.wakeSleepers(); err != nil && bad.Load() == nil {
		return err
	}
	return nil
}

// compareSignature compares our signature in this round with that of another rank, which it returns,
// or 0 if the rank skipped the round.
func (b *boardCall) compareSignature(rank int) (theirs uint64, err error) {
	k := b.net
	theirs, ok := b.board.Signature(rank)
	if k.signature == 0 || ok && callSignature(theirs).sameCall(k.signature) {
		return theirs, nil
	}
	c := b.net.comm
	if !ok { // that rank has found a mismatch and notifies all ranks
		ctx, cancel := context.WithTimeout(context.Background(), mismatchTimeout)
		_ = c.Engine.Wait(ctx, mismatchWait{&k.comparedCall})
		cancel()
	}
	if bad := k.mismatch.Load(); bad != nil {
		return theirs, bad
	}
	d := &callMismatch{Number: k.number, Rank: uint32(rank), Other: uint32(c.Rank), Signature: callSignature(theirs), OtherSignature: k.signature, Sends: -1}
	c.Engine.Do(func(core *protocol.Core) { c.reportMismatch(core, d) })
	return theirs, d
}

// mismatchTimeout is the time in which a rank waits for the mismatch because of which
// another rank has skipped the round.
const mismatchTimeout = time.Second

// mismatchWait is the condition that the mismatch of a call is known.
type mismatchWait struct{ *comparedCall }

// Ready implements engine.Waitable.
func (d mismatchWait) Ready() bool { return d.mismatch.Load() != nil }

// hasHappened reports whether an event of a rank has happened.
func (b *boardCall) hasHappened(rank int, e boardEvent) bool {
	switch e {
	case eventShown:
		return b.board.HasShown(rank)
	case eventFreed:
		return b.board.IsFree(rank)
	}
	return b.board.HasShownStep(rank, int(e))
}

// A rank that waits for another first yields the processor and polls, because the other rank is
// usually about to arrive, or needs this processor. Then it sleeps like all waiters for
// messages, and the other rank wakes it with a message.
const (
	// It spins for spinTime before a yield if no rank waited for needs this processor, but not
	// in skippedSpins waits after a yield of sharedTime: another process does.
	spinTime     = 4 * time.Microsecond
	sharedTime   = 200 * time.Microsecond
	skippedSpins = 32
	// It polls for minSpinTime and minSpins: on a busy processor each yield takes long.
	minSpinTime = 100 * time.Microsecond
	minSpins    = 64
	// It never polls for longer than maxSpinTime,
	maxSpinTime = 5 * time.Millisecond
	// nor after a yield of descheduledTime: another thread computes on this processor.
	descheduledTime = 2 * time.Millisecond
	// After this many polls, and calls, it polls the network, where others may wait for us.
	spinsPerPoll = 16
)

// waitEvent waits for an event of a rank.
func (b *boardCall) waitEvent(rank int, e boardEvent) error {
	if b.hasHappened(rank, e) {
		return nil
	}
	began, shared := time.Now(), &b.net.comm.Shared
	spin := shared.skipSpins == 0
	if !spin {
		shared.skipSpins--
	}
	for i, last := 1, began; ; i++ {
		if i%spinsPerPoll == 0 {
			runtime.Gosched()
			b.net.comm.Engine.PollOnce()
		}
		if spin && b.isAlone(e) {
			spin = false
			if last = b.spinUntil(rank, e, last); last.IsZero() {
				return nil
			}
		}
		sched.Yield()
		if b.hasHappened(rank, e) {
			return nil
		}
		if bad := b.net.mismatch.Load(); bad != nil {
			return bad
		}
		now := time.Now()
		passed, away := now.Sub(began), now.Sub(last)
		if away >= sharedTime {
			shared.skipSpins = skippedSpins
		}
		if last = now; i >= minSpins && passed >= minSpinTime || passed >= maxSpinTime || away >= descheduledTime {
			break
		}
	}
	for !b.hasHappened(rank, e) {
		if err := b.sleepForEvent(rank, e); err != nil {
			if !errors.Is(err, deadlock.ErrMismatch) {
				b.net.comm.Shared.err = fmt.Errorf("communicator %s: earlier call failed: %w", b.net.comm.Name(), err)
			}
			return err
		}
	}
	return nil
}

// isAlone reports whether no rank needs this processor to reach the event.
func (b *boardCall) isAlone(e boardEvent) bool {
	neighbors, ok := b.board.Neighbors()
	for _, r := range neighbors {
		if !b.hasHappened(r, e) {
			return false
		}
	}
	return ok
}

// spinUntil polls for spinTime. It returns the time, or 0 if the event of the rank has happened.
func (b *boardCall) spinUntil(rank int, e boardEvent, began time.Time) (now time.Time) {
	for i := 1; ; i++ {
		if b.hasHappened(rank, e) {
			return time.Time{}
		}
		if i%64 == 0 {
			if now = time.Now(); now.Sub(began) >= spinTime {
				return now
			}
		}
	}
}

// sleepForEvent sleeps until the rank of the event sends a wake-up message.
func (b *boardCall) sleepForEvent(rank int, e boardEvent) error {
	if !b.board.PrepareSleep(rank, func() bool { return b.hasHappened(rank, e) }) {
		return nil
	}
	defer b.board.EndSleep()
	return b.net.Wait(b.net.irecvTagged(rank, nil, wakeTag))
}

// wakeSleepers sends a wake-up message to the ranks that sleep until our event.
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
