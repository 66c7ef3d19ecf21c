package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/internal/racesync"
)

// Board is what one rank sees of memory in which each has a place that the others
// look at. Its methods are called by one goroutine at a time.
//
//	header | line of rank 0 | line of rank 1 ... | even places by rank | odd places by rank
type Board struct {
	rank, ranks, room int

	header    *header
	lines     []line // by rank
	data      []byte
	round     uint64           // ours, counted from 1
	lastShown [parities]uint64 // the last rounds of each parity that we have shown something in
}

// parities is how many rounds have a place of their own, one after the other: so who
// has shown something may go on while others still look at it.
const parities = 2

// lineSize is what processors take as one to and from each other, two lines of a
// cache: what different ranks write is further apart.
const lineSize = 128

// header is for all.
type header struct {
	sleepers atomic.Uint32 // how many are asleep, or about to be
	_        [lineSize - 4]byte
}

// line is what a rank says of itself.
type line struct {
	shown  atomic.Uint64     // the last round in which it has shown something
	done   atomic.Uint64     // the last round that it looks at no more
	signs  [signHistory]sign // of the last rounds
	asleep atomic.Uint32     // who has to wake it, and 1: others set it to 0
	_      [lineSize - 20 - 16*signHistory]byte
}

// signHistory is the number of rounds that a sign stays: no rank is more than two rounds ahead of one
// that begins one, which so finds those of the round before the last one, too.
const signHistory = 4

// A sign is the sign that a rank has shown in a round. round is 0 while the sign changes.
type sign struct{ round, sign atomic.Uint64 }

// BoardSize is the memory that a board takes, with room for so many bytes of each rank.
func BoardSize(ranks, room int) int { return lineSize + ranks*(lineSize+parities*slotStride(room)) }

// slotStride is from one rank's place to the next.
func slotStride(room int) int { return (room + lineSize - 1) &^ (lineSize - 1) }

// NewBoard is the board of a rank on memory that all of them have in common, of the Size of
// ranks and room. It begins with zeros.
func NewBoard(mem []byte, ranks, room, rank int) *Board {
	mem = mem[:BoardSize(ranks, room)]
	lines := mem[lineSize:][:ranks*lineSize]
	return &Board{
		rank: rank, ranks: ranks, room: room,
		header: (*header)(unsafe.Pointer(&mem[0])),
		lines:  unsafe.Slice((*line)(unsafe.Pointer(&lines[0])), ranks),
		data:   mem[lineSize+len(lines):],
	}
}

// BeginNextRound begins the next round.
func (b *Board) BeginNextRound() { b.BeginRound(b.round + 1) }

// BeginRound begins a round of any number greater than the last one's. Ranks that leave
// out different rounds meet again in the next one that all of them begin.
func (b *Board) BeginRound(round uint64) {
	racesync.Release()
	b.lines[b.rank].done.Store(round - 1)
	b.round = round
}

// IsFree reports whether a rank looks no more at what was in our place of this round
// before.
func (b *Board) IsFree(rank int) bool {
	free := b.lines[rank].done.Load() >= b.lastShown[b.round%parities]
	racesync.Acquire()
	return free
}

// Slot is a rank's place in this round.
func (b *Board) Slot(rank int) []byte {
	at := (int(b.round%parities)*b.ranks + rank) * slotStride(b.room)
	return b.data[at:][:b.room:b.room]
}

// Show shows what is in our place, and a sign.
func (b *Board) Show(sign uint64) {
	us := &b.lines[b.rank]
	slot := &us.signs[b.round%signHistory]
	slot.round.Store(0)
	slot.sign.Store(sign)
	slot.round.Store(b.round)
	racesync.Release()
	us.shown.Store(b.round)
	b.lastShown[b.round%parities] = b.round
}

// HasShown reports whether a rank has shown what it has in this round.
func (b *Board) HasShown(rank int) bool {
	shown := b.lines[rank].shown.Load() >= b.round
	racesync.Acquire()
	return shown
}

// Sign is the sign that a rank has shown in this round, 0 if it has left the round out.
func (b *Board) Sign(rank int) uint64 {
	sign, _ := b.SignInRound(rank, b.round)
	return sign
}

// SignInRound returns the sign that a rank has shown in a round, and whether there is one:
// not before it has shown something, nor for more than a few rounds after that.
func (b *Board) SignInRound(rank int, round uint64) (sign uint64, ok bool) {
	slot := &b.lines[rank].signs[round%signHistory]
	if slot.round.Load() != round {
		return 0, false
	}
	sign = slot.sign.Load()
	return sign, slot.round.Load() == round
}

// EndRound says that we look at no place of this round any more.
func (b *Board) EndRound() {
	racesync.Release()
	b.lines[b.rank].done.Store(b.round)
}

// PrepareSleep says that we are going to sleep until another rank, the one that wakes, has shown
// something or is done, and that there reports. It reports whether we have to: then a
// call of that rank comes, for which we have to wait, and then we are Awake.
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

// EndSleep is the end of a sleep.
func (b *Board) EndSleep() {
	b.lines[b.rank].asleep.Store(0)
	b.header.sleepers.Add(^uint32(0))
}

// Sleepers is how many ranks sleep now, or are about to.
func (b *Board) Sleepers() int { return int(b.header.sleepers.Load()) }

// NextSleeper returns a rank that sleeps and that we have to wake, now that we have shown
// something or are done, and -1 when there are no more. Nobody else wakes it.
func (b *Board) NextSleeper() int {
	if b.header.sleepers.Load() == 0 {
		return -1
	}
	for r := range b.lines {
		if us := uint32(b.rank) + 1; b.lines[r].asleep.Load() == us && b.lines[r].asleep.CompareAndSwap(us, 0) {
			return r
		}
	}
	return -1
}
