package onesided

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// The lock of a window at a rank is a ticket lock in three words, which all ranks change with
// atomics of the adapter, so that the target can compute meanwhile; without atomics they use
// packets. A rank that wants the lock draws a ticket. It owns an exclusive lock when its ticket
// equals exclusiveTurn, a shared lock when its ticket equals sharedTurn. Releasing a lock of
// either kind advances exclusiveTurn. Acquiring a shared lock, and releasing an exclusive one,
// advance sharedTurn. So locks are granted in the order of the tickets, without starvation.
const (
	ticketWord = iota
	exclusiveTurn
	sharedTurn
	lockWords
)

// turnWord returns the word that a lock of the kind waits for.
func (k LockKind) turnWord() int {
	if k == Exclusive {
		return exclusiveTurn
	}
	return sharedTurn
}

// A lockClaim is a lock that is not acquired yet.
type lockClaim struct {
	p      *peer
	ticket uint64
	turn   uint64
}

// acquireLocks acquires the locks of some ranks.
func (w *Window) acquireLocks(kind LockKind, ranks []int) error {
	claims := make([]lockClaim, len(ranks))
	flight := 0
	// A lost rank does not release its lock, so the wait probes all ranks.
	x := &syncWait{w: w, callName: "Lock", targets: ranks, condition: func() bool { return flight == 0 }, suspects: w.allRanks(), any: true, probeWhenDone: true}
	defer w.eng.Do(func(*protocol.Core) { x.done, x.probeWhenDone = true, false })
	w.eng.Do(func(core *protocol.Core) {
		for i, r := range ranks {
			c := &claims[i]
			c.p = &w.peers[r]
			w.fetchAddCounted(core, c.p, ticketWord, 1, &c.ticket, &flight)
			w.fetchAddCounted(core, c.p, kind.turnWord(), 0, &c.turn, &flight)
		}
	})
	for round := 0; ; round++ {
		if err := w.eng.Wait(context.Background(), x); err != nil || x.err != nil {
			return errors.Join(err, x.err)
		}
		before := uint64(0) // the greatest number of tickets before one of ours
		w.eng.Do(func(core *protocol.Core) {
			kept := claims[:0]
			for _, c := range claims {
				switch {
				case c.turn != c.ticket:
					before = max(before, c.ticket-c.turn)
					kept = append(kept, c)
				case kind == Shared:
					w.fetchAdd(core, c.p, sharedTurn, 1, nil)
				}
			}
			claims = kept
		})
		if len(claims) == 0 {
			return nil
		}
		if err := w.backOff(x, round, before); err != nil {
			return err
		}
		w.eng.Do(func(core *protocol.Core) {
			for i := range claims {
				c := &claims[i]
				w.fetchAddCounted(core, c.p, kind.turnWord(), 0, &c.turn, &flight)
			}
		})
	}
}

// Poll intervals of a lock that is held.
const (
	pollInterval    = 10 * time.Microsecond // for each ticket before ours
	maxPollInterval = time.Millisecond      // upper limit
)

// backOff waits before the next poll: longer if more tickets are before ours, and after more
// rounds.
func (w *Window) backOff(x *syncWait, round int, before uint64) error {
	d := min(time.Duration(min(before, 100))*pollInterval<<min(round, 10), maxPollInterval)
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	until := x.condition
	w.eng.Do(func(*protocol.Core) { x.done, x.condition = false, func() bool { return false } })
	err := w.eng.Wait(ctx, x)
	w.eng.Do(func(*protocol.Core) { x.done, x.condition = false, until }) // probeWaits evaluates it meanwhile
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return errors.Join(err, x.err)
}

// releaseLock releases the lock of a rank.
func (w *Window) releaseLock(core *protocol.Core, p *peer, kind LockKind) {
	if p.epoch.nocheck {
		return
	}
	if kind == Exclusive {
		w.fetchAdd(core, p, sharedTurn, 1, nil)
	}
	w.fetchAdd(core, p, exclusiveTurn, 1, nil)
}

// fetchAddCounted is fetchAdd that stores the old value in *was and counts itself in *flight
// until then.
func (w *Window) fetchAddCounted(core *protocol.Core, p *peer, word int, n uint64, was *uint64, flight *int) {
	*flight++
	w.fetchAdd(core, p, word, n, func(v uint64) {
		*was = v
		*flight--
	})
}

// fetchAdd adds n to a word of a rank's lock and calls then with the old value. The caller
// holds the engine's lock.
func (w *Window) fetchAdd(core *protocol.Core, p *peer, word int, n uint64, then func(was uint64)) {
	if p.rank == w.comm.Rank {
		was := atomic.AddUint64(&w.control[word], n) - n
		if then != nil {
			then(was)
		}
		return
	}
	if !p.atomics {
		h := envelope.Header{Context: w.comm.ContextID, Tag: packetFetchAdd.encodeTag(datatype.Kind(word), datatype.Op{}), Length: n}
		if then != nil {
			h.ID = w.pending.newID()
			w.pending.fetchAdds[h.ID] = then
		}
		_ = core.SendActive(p.job, h, nil) // if the rank is lost, so is the window
		return
	}
	r := &protocol.Request{Dest: p.job, Buf: make([]byte, 8)}
	p.sendQueue.lockUpdates++
	r.OnDone = func(r *protocol.Request) {
		p.sendQueue.lockUpdates--
		if then != nil && r.Err == nil { // else the rank is lost
			var was uint64
			_ = datatype.Value(&was).Unpack(r.Buf)
			then(was)
		}
	}
	key := p.control
	key.Addr += uint64(8 * word)
	core.Atomic(r, key, protocol.Atomic{Operand: n})
}

// handleFetchAddReply handles the old value of a word of the lock.
func (w *Window) handleFetchAddReply(id uint64, payload []byte) error {
	then := w.pending.fetchAdds[id]
	if then == nil || len(payload) != 8 {
		return errUnexpectedReply
	}
	delete(w.pending.fetchAdds, id)
	then(binary.LittleEndian.Uint64(payload))
	return nil
}

// serveLockWord executes a fetch-and-add on a word of the lock here.
func (w *Window) serveLockWord(core *protocol.Core, p *peer, h *envelope.Header) error {
	word := int(uint8(h.Tag >> 8))
	if word >= len(w.control) {
		return fmt.Errorf("%w: invalid lock word %d", protocol.ErrProtocol, word)
	}
	was := atomic.AddUint64(&w.control[word], h.Length) - h.Length
	if h.ID != 0 {
		reply := envelope.Header{Context: w.comm.ContextID, Tag: int32(packetFetchAddReply), ID: h.ID}
		_ = core.SendActive(p.job, reply, binary.LittleEndian.AppendUint64(w.buffers.reply[:0], was))
	}
	return nil
}
