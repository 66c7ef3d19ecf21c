package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/internal/racesync"
)

// A Board is one rank's view of shared memory in which each rank has a slot that the
// others read. It is not safe for concurrent use.
//
//	header | line of rank 0 | line of rank 1 ... | even slots by rank | odd slots by rank
type Board struct {
	rank, ranks, room int

	header    *header
	lines     []line // by rank
	data      []byte
	round     uint64           // current round of this rank, from 1
	done      uint64           // done of our line
	lastShown [parities]uint64 // last round shown, by parity
	seen      []uint64         // last round that HasShown has reported, by rank
	seenCount int              // ranks seen in this round
	allDone   uint64           // all ranks have done at least this round
	neighbors []int            // of Neighbors, nil: unknown
}

// parities is the number of rounds that have slots of their own: a rank may go on to
// the next round while others still read its slot.
const parities = 2

// lineSize is the false-sharing granularity in bytes: two cache lines, because
// processors prefetch pairs. Data written by different ranks is that far apart.
const lineSize = 128

// The header is shared by all ranks.
type header struct {
	sleepers atomic.Uint32 // number of ranks asleep, or about to sleep
	_        [lineSize - 4]byte
}

// A line is the state that a rank publishes, in two cache lines: others that wait look at the first.
type line struct {
	signs [signHistory]sign // of the last rounds shown

	done      atomic.Uint64 // last round whose slots it does not read any more
	step      atomic.Uint64 // last round with steps, times maxSteps, plus the last step
	asleep    atomic.Uint32 // 1 + the rank that has to wake it, which sets it to 0
	processor atomic.Uint32 // 2 + the processor it is bound to, 1 if it may run on several, 0 at first
	_         [lineSize - 24 - 16*signHistory]byte
}

// signHistory is the number of rounds for which a sign stays available: no rank is more
// than two rounds ahead of one that starts a round, which therefore also finds the
// signs of the round before its last one.
const signHistory = 4

// A sign is the sign of a round, which is stored last. A rank reads the sign of its round only:
// until it has ended that, no rank shows another one here.
type sign struct{ round, sign atomic.Uint64 }

// BoardSize returns the size of a board in bytes, with room bytes per slot.
func BoardSize(ranks, room int) int { return lineSize + ranks*(lineSize+parities*slotStride(room)) }

// slotStride returns the distance from one slot to the next.
func slotStride(room int) int { return (room + lineSize - 1) &^ (lineSize - 1) }

// NewBoard returns the board of a rank in shared memory of BoardSize(ranks, room)
// bytes, initially zero.
func NewBoard(mem []byte, ranks, room, rank int) *Board {
	mem = mem[:BoardSize(ranks, room)]
	lines := mem[lineSize:][:ranks*lineSize]
	return &Board{
		rank: rank, ranks: ranks, room: room,
		header: (*header)(unsafe.Pointer(&mem[0])),
		lines:  unsafe.Slice((*line)(unsafe.Pointer(&lines[0])), ranks),
		data:   mem[lineSize+len(lines):],
		seen:   make([]uint64, ranks),
	}
}

// Bind publishes the processor to which this rank is bound, for Neighbors. If not bound, it may run on
// any.
func (b *Board) Bind(processor int, bound bool) {
	p := uint32(unbound)
	if bound {
		p += 1 + uint32(processor)
	}
	b.lines[b.rank].processor.Store(p)
}

// Neighbors returns the other ranks that may run on the processor of this rank, and need it to
// proceed. ok is false if they are unknown: this rank is not bound, or others have not called
// Bind yet.
func (b *Board) Neighbors() (ranks []int, ok bool) {
	if b.neighbors == nil {
		ours := b.lines[b.rank].processor.Load()
		if ours <= unbound {
			return nil, false
		}
		list := make([]int, 0, b.ranks)
		for r := range b.lines {
			switch p := b.lines[r].processor.Load(); {
			case p == 0:
				return nil, false
			case r != b.rank && (p == ours || p == unbound):
				list = append(list, r)
			}
		}
		b.neighbors = list
	}
	return b.neighbors, true
}

// unbound is the processor of a rank that may run on several.
const unbound = 1

// BeginRound starts a round with a number greater than the last one. Ranks that skip
// different rounds meet again in the next round that all of them start.
func (b *Board) BeginRound(round uint64) {
	b.finish(round - 1)
	b.round, b.seenCount = round, 0
}

// finish declares that this rank reads no slot of a round any more.
func (b *Board) finish(round uint64) {
	if b.done != round {
		racesync.Release()
		b.lines[b.rank].done.Store(round)
		b.done = round
	}
}

// AreAllFree reports whether IsFree is true of all ranks.
func (b *Board) AreAllFree() bool {
	last := b.lastShown[b.round%parities]
	if b.allDone >= last {
		return true
	}
	for r := range b.lines {
		if !b.IsFree(r) {
			return false
		}
	}
	b.allDone = last
	return true
}

// IsFree reports whether a rank has finished reading the previous content of the
// current slot of this rank.
func (b *Board) IsFree(rank int) bool {
	free := b.lines[rank].done.Load() >= b.lastShown[b.round%parities]
	racesync.Acquire()
	return free
}

// Slot returns a rank's slot in this round.
func (b *Board) Slot(rank int) []byte {
	at := (int(b.round%parities)*b.ranks + rank) * slotStride(b.room)
	return b.data[at:][:b.room:b.room]
}

// Chunk returns the slot of a rank for chunk k of this round: chunk 0 is in Slot, and each further one
// in the slot of the other parity than the one before. A rank may write chunk 1 when all ranks have
// shown their slots of this round, and chunk k when they do not read chunk k-2 any more.
func (b *Board) Chunk(rank, k int) []byte {
	at := (int((b.round+uint64(k))%parities)*b.ranks + rank) * slotStride(b.room)
	return b.data[at:][:b.room:b.room]
}

// maxSteps is the number of steps of a round, plus 1.
const maxSteps = 1 << 24

// ShowStep publishes a step of this round, from 1 on, each greater than the last one: the chunks
// that this rank has written before are valid. From step 2 on they may be more than chunk 0.
func (b *Board) ShowStep(step int) {
	racesync.Release()
	b.lines[b.rank].step.Store(b.round*maxSteps + uint64(step))
	if step > 1 { // chunks may be in either slot
		b.lastShown = [parities]uint64{b.round, b.round}
	}
}

// HasShownStep reports whether a rank has published a step of this round.
func (b *Board) HasShownStep(rank, step int) bool {
	published := b.lines[rank].step.Load() >= b.round*maxSteps+uint64(step)
	racesync.Acquire()
	return published
}

// Show publishes the slot of this rank, with a sign.
func (b *Board) Show(sign uint64) {
	slot := &b.lines[b.rank].signs[b.round%signHistory]
	slot.sign.Store(sign)
	racesync.Release()
	slot.round.Store(b.round)
	b.lastShown[b.round%parities] = b.round
}

// HasShown reports whether a rank has shown its slot in this round, or skipped the round.
func (b *Board) HasShown(rank int) bool {
	line := &b.lines[rank]
	if line.signs[b.round%signHistory].round.Load() < b.round && !line.hasSkipped(b.round) {
		return false
	}
	racesync.Acquire()
	if b.seen[rank] != b.round {
		b.seen[rank] = b.round
		if b.seenCount++; b.seenCount == b.ranks { // they have started the round
			b.allDone = b.round - 1
		}
	}
	return true
}

// hasSkipped reports whether the rank has shown its slot in a later round.
func (l *line) hasSkipped(round uint64) bool {
	for i := range l.signs {
		if l.signs[i].round.Load() > round {
			return true
		}
	}
	return false
}

// HasSeenAll reports whether HasShown has reported all ranks in this round.
func (b *Board) HasSeenAll() bool { return b.seenCount == b.ranks }

// Signature returns the sign of a rank in this round. ok is false before the rank has shown its
// slot, and if it skipped the round.
func (b *Board) Signature(rank int) (sign uint64, ok bool) {
	slot := &b.lines[rank].signs[b.round%signHistory]
	if slot.round.Load() != b.round {
		return 0, false
	}
	return slot.sign.Load(), true
}

// EndRound declares that this rank reads no slot of this round any more.
func (b *Board) EndRound() {
	b.finish(b.round)
}

// PrepareSleep declares that this rank is about to sleep until the rank wakes has shown
// its slot or ended the round, which there reports. It reports whether the rank must
// sleep: then rank wakes sends a wakeup, which must be awaited and followed by
// EndSleep.
func (b *Board) PrepareSleep(wakes int, there func() bool) bool {
	us := &b.lines[b.rank].asleep
	us.Store(uint32(wakes) + 1)
	b.header.sleepers.Add(1)
	if there() && us.Swap(0) != 0 {
		b.header.sleepers.Add(^uint32(0))
		return false
	}
	return true
}

// EndSleep ends a sleep.
func (b *Board) EndSleep() {
	b.lines[b.rank].asleep.Store(0)
	b.header.sleepers.Add(^uint32(0))
}

// Sleepers returns the number of ranks asleep, or about to sleep.
func (b *Board) Sleepers() int { return int(b.header.sleepers.Load()) }

// NextSleeper returns a sleeping rank that this rank must wake after it has shown its
// slot or ended a round, or -1 if there is none. No other rank wakes it.
func (b *Board) NextSleeper() int {
	if b.Sleepers() == 0 {
		return -1
	}
	for r := range b.lines {
		if us := uint32(b.rank) + 1; b.lines[r].asleep.Load() == us && b.lines[r].asleep.CompareAndSwap(us, 0) {
			return r
		}
	}
	return -1
}
