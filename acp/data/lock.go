package data

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/acp"
)

// The first word of each structure is its lock and identifies its kind. From the top it contains 24 bits of
// kind, 21 bits of 1 + the rank of the holder or 0, and 19 bits of that rank's lock sequence number. So one
// compare-and-swap checks the kind and acquires the lock, and a wrong address changes nothing.
const (
	seqBits    = 19
	holderBits = 21
	kindShift  = holderBits + seqBits
)

// kind is the kind of a structure: three letters.
type kind uint64

const (
	kindHeap   kind = 'h'<<16 | 'e'<<8 | 'p'
	kindVector kind = 'v'<<16 | 'e'<<8 | 'c'
	kindDeque  kind = 'd'<<16 | 'e'<<8 | 'q'
	kindList   kind = 'l'<<16 | 's'<<8 | 't'
	kindNode   kind = 'n'<<16 | 'o'<<8 | 'd'
	kindMap    kind = 'm'<<16 | 'a'<<8 | 'p'
	kindBucket kind = 'b'<<16 | 'k'<<8 | 't'
	kindDead   kind = 'x'<<16 | 'x'<<8 | 'x' // a destroyed structure
)

var kindNames = map[kind]string{kindHeap: "heap", kindVector: "vector", kindDeque: "deque", kindList: "list", kindNode: "element of a list",
	kindMap: "map", kindBucket: "bucket of a map"}

func (k kind) String() string {
	if n, ok := kindNames[k]; ok {
		return n
	}
	return fmt.Sprintf("kind %#x", uint64(k))
}

// freeWord returns the word of a structure that is not locked.
func (k kind) freeWord() uint64 { return uint64(k) << kindShift }

// checkWord returns an error if a word is not that of a structure of kind k.
func (k kind) checkWord(word uint64) error {
	switch is := kind(word >> kindShift); {
	case is == k:
		return nil
	case is == kindDead:
		return ErrDestroyed
	case kindNames[is] != "":
		return fmt.Errorf("%w: found a %v, want a %v", ErrKind, is, k)
	default:
		return fmt.Errorf("%w: want a %v", ErrKind, k)
	}
}

// The pauses before a waiter retries.
const (
	pauseMin = 5 * time.Microsecond
	pauseMax = time.Millisecond
)

// maxHeldProbes is the number of probes of the same lock, answered by a live holder, after which a waiter
// gives up with ErrHeld.
const maxHeldProbes = 20

// lockStruct acquires the lock of a structure, and returns the word to release it with. It waits until ctx
// ends, the holder is found lost, or the holder keeps the lock for maxHeldProbes probes.
func (s *Space) lockStruct(ctx context.Context, at acp.GA, k kind) (mine uint64, err error) {
	turn := uint64(s.lockSeq.Add(1)) & (1<<seqBits - 1)
	mine = k.freeWord() | uint64(s.p.Rank()+1)<<seqBits | turn
	var seen uint64 // the word of the current holder
	var since, asked time.Time
	asks := 0
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		found, err := s.compareSwap(at, k.freeWord(), mine)
		if err != nil {
			return 0, err
		}
		if found == k.freeWord() {
			return mine, nil
		}
		if err := k.checkWord(found); err != nil {
			return 0, err
		}
		now := time.Now()
		if found != seen {
			seen, since, asked, asks = found, now, now, 0
		}
		holder := int(found>>seqBits&(1<<holderBits-1)) - 1
		if holder < 0 || holder >= s.p.Size() {
			return 0, fmt.Errorf("%w: lock at %v: holder is rank %d of %d", ErrDamaged, at, holder, s.p.Size())
		}
		if now.Sub(asked) >= s.o.ProbeDelay {
			if err := s.probeRank(holder); err != nil {
				return 0, &LockError{At: at, Holder: holder, For: time.Since(since), Err: fmt.Errorf("%w: %w", ErrHolderLost, err)}
			}
			if asks++; asks == maxHeldProbes {
				return 0, &LockError{At: at, Holder: holder, For: time.Since(since), Err: ErrHeld}
			}
			asked = time.Now()
		}
		if err := sleepCtx(ctx, pause); err != nil {
			return 0, fmt.Errorf("wait for rank %d to release the lock at %v: %w", holder, at, err)
		}
	}
}

// unlockStruct executes the pending writes and releases a lock; next is the new lock word. Operations on one
// region are executed in order, so writes there need no separate wait.
func (s *Space) unlockStruct(at acp.GA, mine, next uint64, pieces ...pendingWrite) error {
	var near, far []pendingWrite
	for _, p := range pieces {
		if p.to.Rank() == at.Rank() && regionOf(p.to) == regionOf(at) {
			near = append(near, p)
		} else {
			far = append(far, p)
		}
	}
	if len(far) > 0 {
		if err := s.writeAll(far...); err != nil {
			return errors.Join(err, s.unlockStruct(at, mine, next))
		}
	}
	g := s.p.NewGroup()
	var found uint64
	if err := s.writeThen(g, near, func() { g.CompareSwap(&found, at, mine, next) }); err != nil {
		return err
	}
	if found != mine {
		return fmt.Errorf("%w: lock at %v: overwritten", ErrDamaged, at)
	}
	return nil
}

// probeRank reads a word of a rank, which fails if the rank is lost.
func (s *Space) probeRank(rank int) error {
	if rank == s.p.Rank() {
		return nil
	}
	return s.readBytes(s.p.StarterGA(rank).Add(s.o.Anchor), make([]byte, 8))
}

// sleepCtx sleeps for d. It returns the cause if ctx ends first.
func sleepCtx(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	if ctx == nil {
		ctx = context.Background()
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// withoutCancel returns ctx without its cancellation, for work that must not stop halfway. A nil ctx is
// permitted.
func withoutCancel(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return context.WithoutCancel(ctx)
}
