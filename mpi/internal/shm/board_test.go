package shm_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// boards returns the boards of all ranks, each in a mapping of its own.
func boards(t testing.TB, ranks, room int) (list []*shm.Board) {
	size := shm.BoardSize(ranks, room)
	first := create(t, size)
	for r := range ranks {
		s := first
		if r > 0 {
			var err error
			s, err = shm.Open(first.Name(), size)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
		}
		list = append(list, shm.NewBoard(s.Bytes(), ranks, room, r))
	}
	require.NoError(t, first.Unlink())
	return list
}

// TestRounds checks that a reader gets the data of the current round, however far other ranks are
// ahead. Some ranks sleep until they are woken, and none sleeps forever.
func TestRounds(t *testing.T) {
	const ranks, room, rounds = 5, 200, 2000
	list := boards(t, ranks, room)
	calls := make([]chan struct{}, ranks)
	for r := range calls {
		calls[r] = make(chan struct{}, 1)
	}
	var all sync.WaitGroup
	for rank, b := range list {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(rank), 1))
			call := func() {
				for r := b.NextSleeper(); r >= 0; r = b.NextSleeper() {
					calls[r] <- struct{}{}
				}
			}
			wait := func(other int, there func(int) bool) {
				for !there(other) {
					if rng.IntN(4) > 0 {
						runtime.Gosched()
						continue
					}
					if b.PrepareSleep(other, func() bool { return there(other) }) {
						<-calls[rank]
						b.EndSleep()
					}
				}
			}
			for i := range rounds {
				b.BeginRound(uint64(i) + 1)
				if !b.AreAllFree() {
					for r := range ranks {
						wait(r, b.IsFree)
					}
				}
				place := b.Slot(rank)
				if len(place) != room || cap(place) != room {
					t.Errorf("a place of %d bytes", len(place))
				}
				binary.LittleEndian.PutUint64(place, uint64(i*ranks+rank))
				binary.LittleEndian.PutUint64(place[room-8:], uint64(i))
				b.Show(uint64(i))
				call()
				for range rng.IntN(2 * ranks) {
					r := rng.IntN(ranks)
					wait(r, b.HasShown)
					sign, ok := b.Signature(r)
					got := fmt.Sprint(binary.LittleEndian.Uint64(b.Slot(r)), binary.LittleEndian.Uint64(b.Slot(r)[room-8:]), sign, ok)
					if want := fmt.Sprint(i*ranks+r, i, i, true); got != want {
						t.Errorf("rank %d sees %s of rank %d in round %d, not %s", rank, got, r, i, want)
					}
				}
				if i%3 == 0 { // with two more chunks, in the slots of both parities
					showChunks(t, b, rank, ranks, call, wait)
				}
				b.EndRound()
				call()
			}
		})
	}
	all.Wait()
}

// showChunks has a rank show chunks 1 and 2 of the round, and checks those of the other ranks.
func showChunks(t *testing.T, b *shm.Board, rank, ranks int, call func(), wait func(int, func(int) bool)) {
	for r := range ranks {
		wait(r, b.HasShown)
	}
	for k := 1; k <= 2; k++ {
		chunk := b.Chunk(rank, k)
		for i := range chunk {
			chunk[i] = byte(k*ranks + rank)
		}
		b.ShowStep(k)
		call()
		for r := range ranks {
			wait(r, func(r int) bool { return b.HasShownStep(r, k) })
			if got, want := b.Chunk(r, k), byte(k*ranks+r); got[0] != want || got[len(got)-1] != want {
				t.Errorf("chunk %d of rank %d: %d and %d, not %d", k, r, got[0], got[len(got)-1], want)
			}
		}
	}
}

func TestBoardSleep(t *testing.T) {
	list := boards(t, 3, 0)
	a, b, c := list[0], list[1], list[2]
	for _, x := range list {
		x.BeginRound(1)
		require.Equal(t, -1, x.NextSleeper())
	}
	no, yes := func() bool { return false }, func() bool { return true }
	require.True(t, a.PrepareSleep(1, no))
	require.True(t, c.PrepareSleep(1, no))
	require.Equal(t, -1, a.NextSleeper(), "no rank sleeps for it")
	c.EndSleep() // without another rank
	require.False(t, c.PrepareSleep(1, yes), "it is there already")
	require.False(t, a.HasShown(1))
	b.Show(7)
	require.Equal(t, 0, b.NextSleeper())
	require.Equal(t, -1, b.NextSleeper(), "once")
	a.EndSleep()
	require.True(t, c.PrepareSleep(1, func() bool { return b.NextSleeper() == 2 }), "a call is on its way")
	c.EndSleep()
	require.True(t, a.HasShown(1))
	sign, ok := a.Signature(1)
	require.EqualValues(t, 7, sign)
	require.True(t, ok)
	_, ok = a.Signature(2)
	require.False(t, ok)
	require.Empty(t, a.Slot(1))
}

// TestNeighbors checks which ranks may need the processor of a rank, also before all are known.
func TestNeighbors(t *testing.T) {
	list := boards(t, 4, 0)
	list[0].Bind(3, true)
	list[1].Bind(3, true)
	list[2].Bind(0, true)
	_, ok := list[0].Neighbors()
	require.False(t, ok, "rank 3 is unknown")
	list[3].Bind(0, false)
	for rank, want := range [][]int{{1, 3}, {0, 3}, {3}} {
		got, ok := list[rank].Neighbors()
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	_, ok = list[3].Neighbors()
	require.False(t, ok, "it may run on any processor")
}

func Example() {
	const ranks, room = 2, 64
	mem := make([]byte, shm.BoardSize(ranks, room)) // of a Segment, where ranks are processes
	a, b := shm.NewBoard(mem, ranks, room, 0), shm.NewBoard(mem, ranks, room, 1)
	a.BeginRound(1)
	b.BeginRound(1)
	a.Show(uint64(copy(a.Slot(0), "word")))
	n, _ := b.Signature(0)
	fmt.Println(b.HasShown(0), b.HasShown(1), string(b.Slot(0)[:n]))
	// Output:
	// true false word
}
