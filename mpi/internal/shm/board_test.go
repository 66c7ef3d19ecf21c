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

// boards are those of all ranks, each on memory of its own mapping.
func boards(t testing.TB, ranks, room int) (list []*shm.Board) {
	size := shm.Size(ranks, room)
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

// Whoever looks finds what was shown in this round, however far others are ahead. Some
// sleep until they are called, and nobody for ever.
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
				for r := b.Call(); r >= 0; r = b.Call() {
					calls[r] <- struct{}{}
				}
			}
			wait := func(other int, there func(int) bool) {
				for !there(other) {
					if rng.IntN(4) > 0 {
						runtime.Gosched()
						continue
					}
					if b.Sleep(other, func() bool { return there(other) }) {
						<-calls[rank]
						b.Awake()
					}
				}
			}
			for i := range rounds {
				b.Begin()
				for r := range ranks {
					wait(r, b.Free)
				}
				place := b.Place(rank)
				if len(place) != room || cap(place) != room {
					t.Errorf("a place of %d bytes", len(place))
				}
				binary.LittleEndian.PutUint64(place, uint64(i*ranks+rank))
				binary.LittleEndian.PutUint64(place[room-8:], uint64(i))
				b.Show(uint64(i))
				call()
				for range rng.IntN(2 * ranks) {
					r := rng.IntN(ranks)
					wait(r, b.Shown)
					got := fmt.Sprint(binary.LittleEndian.Uint64(b.Place(r)), binary.LittleEndian.Uint64(b.Place(r)[room-8:]), b.Sign(r))
					if want := fmt.Sprint(i*ranks+r, i, i); got != want {
						t.Errorf("rank %d sees %s of rank %d in round %d, not %s", rank, got, r, i, want)
					}
				}
				b.Done()
				call()
			}
		})
	}
	all.Wait()
}

func TestBoardSleep(t *testing.T) {
	list := boards(t, 3, 0)
	a, b, c := list[0], list[1], list[2]
	for _, x := range list {
		x.Begin()
		require.Equal(t, -1, x.Call())
	}
	no, yes := func() bool { return false }, func() bool { return true }
	require.True(t, a.Sleep(1, no))
	require.True(t, c.Sleep(1, no))
	require.Equal(t, -1, a.Call(), "nobody sleeps for it")
	c.Awake() // by itself
	require.False(t, c.Sleep(1, yes), "it is there already")
	require.False(t, a.Shown(1))
	b.Show(7)
	require.Equal(t, 0, b.Call())
	require.Equal(t, -1, b.Call(), "once")
	a.Awake()
	require.True(t, c.Sleep(1, func() bool { return b.Call() == 2 }), "a call is on its way")
	c.Awake()
	require.True(t, a.Shown(1))
	require.EqualValues(t, 7, a.Sign(1))
	require.Empty(t, a.Place(1))
}

func Example() {
	const ranks, room = 2, 64
	mem := make([]byte, shm.Size(ranks, room)) // of a Segment, where ranks are processes
	a, b := shm.NewBoard(mem, ranks, room, 0), shm.NewBoard(mem, ranks, room, 1)
	a.Begin()
	b.Begin()
	n := copy(a.Place(0), "word")
	a.Show(uint64(n))
	fmt.Println(b.Shown(0), b.Shown(1), string(b.Place(0)[:b.Sign(0)]))
	// Output:
	// true false word
}
