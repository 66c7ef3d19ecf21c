package mpi_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// winNets are the options of window tests.
var winNets = map[string]mpi.Options{
	"direct":   {},
	"fast":     {RDMA: mpi.RDMAOptions{Fast: true}},
	"messages": {OneSided: mpi.Messages},
	"short":    {OneSided: mpi.Messages, RDMA: mpi.RDMAOptions{Eager: 100, Rendezvous: mpi.RendezvousWrite}},
	"tcp":      {Net: mpi.TCP},
	"ud":       {Net: mpi.UD},
}

// winJob runs f on n ranks on the named nets, or on all if none is named.
func winJob(t *testing.T, n int, f func(t *testing.T, w mpi.World) error, names ...string) {
	for name, o := range winNets {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			job(t, n, o, func(w mpi.World) error { return f(t, w) })
		})
	}
}

func TestWinFence(t *testing.T) {
	winJob(t, 3, func(t *testing.T, w mpi.World) error {
		mine := make([]int64, 10)
		win, err := mpi.WinCreate(w.Comm, mine)
		require.NoError(t, err)
		require.NoError(t, win.Fence())
		for r := range w.Size() {
			require.NoError(t, win.Put(mpi.Of([]int64{int64(w.Rank() + 1)}), r, mpi.At(w.Rank())))
			require.NoError(t, win.Accumulate(mpi.Of([]int64{int64(w.Rank() + 1), 1}), r, mpi.At(5), mpi.Sum))
		}
		require.NoError(t, win.Fence())
		require.Equal(t, []int64{1, 2, 3, 0, 0, 6, 3, 0, 0, 0}, mine)
		got := make([]int64, 3)
		require.NoError(t, win.Get(mpi.Of(got), (w.Rank()+1)%3, mpi.At(0)))
		require.NoError(t, win.Put(mpi.Of(got), mpi.ProcNull, mpi.At(-5)))
		require.NoError(t, win.Fence(mpi.NoSucceed))
		require.Equal(t, []int64{1, 2, 3}, got)
		return win.Free()
	}, "direct", "messages")
}

// TestWinAttributes checks that ranks know the sizes of the windows of others, which may
// differ.
func TestWinAttributes(t *testing.T) {
	winJob(t, 3, func(t *testing.T, w mpi.World) error {
		var win *mpi.Win
		var err error
		switch w.Rank() {
		case 0:
			win, err = mpi.WinCreate(w.Comm, make([]float32, 5))
		case 1:
			win, err = mpi.WinCreate(w.Comm, []byte(nil))
		default:
			win, _, err = mpi.WinAllocate[struct {
				A int64
				B bool
			}](w.Comm, 2)
		}
		require.NoError(t, err)
		for r, size := range []int{20, 0, 32} {
			require.Equal(t, size, win.Size(r))
			require.Equal(t, []int{4, 1, 16}[r], win.Unit(r))
		}
		require.Equal(t, 3, win.Group().Size())
		require.Equal(t, "world.win", win.Name())
		win.SetName("mine")
		require.NoError(t, win.Fence())
		err = win.Put(mpi.Of([]byte{1}), 1, mpi.At(0))
		require.ErrorIs(t, err, mpi.ErrRange)
		require.ErrorContains(t, err, fmt.Sprintf("mpi: rank %d of mine: put to 1 at 0: ", w.Rank()))
		return win.Free()
	}, "direct", "messages")
}

// particle has padding.
type particle struct {
	A int8
	X float64
	B int16
}

// TestWinShapes checks that elements of all types, layouts and lengths are read back as they were
// written.
func TestWinShapes(t *testing.T) {
	winJob(t, 2, func(t *testing.T, w mpi.World) error {
		win, _, err := mpi.WinAllocate[byte](w.Comm, 3<<20)
		require.NoError(t, err)
		particles, err := mpi.WinCreate(w.Comm, make([]particle, 50))
		require.NoError(t, err)
		other := 1 - w.Rank()
		require.NoError(t, win.LockAll())
		require.NoError(t, particles.LockAll())
		for _, n := range []int{1, 7, 300, 5000, 200_000} {
			for _, strided := range []bool{false, true} {
				if strided && n > 5000 {
					continue
				}
				send, recv := newMemory(vectorOf(w.Rank(), n/8+1), strided), newMemory(blankElements(n/8+1), strided)
				for at, place := range []mpi.Place{mpi.At(8), mpi.At(3), mpi.At(16).Strided(n/8+1, 1, 2)} {
					if at == 2 && n > 5000 {
						continue
					}
					require.NoError(t, win.Put(send.buffer(), other, place))
					require.NoError(t, win.Flush(other))
					require.NoError(t, win.Get(recv.buffer(), other, place))
					require.NoError(t, win.FlushLocal(other))
					require.NoError(t, recv.compare(fmt.Sprint(n, strided, at), send.sent()))
				}
			}
		}

		// Large blocks are transferred one by one, short ones together.
		for _, block := range []int{10, 5000} {
			send := make([]byte, 20*block)
			for i := range send {
				send[i] = byte(i % 251)
			}
			recv := make([]byte, len(send))
			blocks := make([]mpi.Block, 20)
			for i := range blocks {
				blocks[i] = mpi.Block{At: (i*7%20)*(block+21) + i, Len: block}
			}
			require.NoError(t, win.Put(mpi.Of(send), other, mpi.At(5).Indexed(blocks)))
			require.NoError(t, win.Flush(other))
			require.NoError(t, win.Get(mpi.Of(recv), other, mpi.At(5).Indexed(blocks)))
			require.NoError(t, win.FlushAll())
			require.Equal(t, send, recv)
		}

		ps, back := make([]particle, 10), make([]particle, 10)
		for i := range ps {
			ps[i] = particle{int8(i), float64(i) / 3, int16(-i)}
		}
		for _, at := range []mpi.Place{mpi.At(3), mpi.At(0).Strided(5, 2, 3)} {
			clear(back)
			require.NoError(t, particles.Put(mpi.Structs(ps), other, at))
			require.NoError(t, particles.Flush(other))
			require.NoError(t, particles.Get(mpi.Structs(back, "A", "X"), other, at))
			require.NoError(t, particles.Get(mpi.Structs(back, "B"), other, at))
			require.NoError(t, particles.Flush(other))
			require.Equal(t, ps, back)
		}
		require.NoError(t, win.UnlockAll())
		require.NoError(t, particles.UnlockAll())
		require.NoError(t, particles.Free())
		return win.Free()
	})
}

// vectorOf returns n elements of a rank.
func vectorOf(rank, n int) []int64 { return vector(rank, 0, n) }

// sent returns the initial elements.
func (m *memory) sent() []int64 {
	v := make([]int64, m.n)
	for i := range v {
		v[i] = m.all[m.indexOf(i)]
	}
	return v
}

// TestWinRequests checks that operations are complete when their Request is.
func TestWinRequests(t *testing.T) {
	winJob(t, 2, func(t *testing.T, w mpi.World) error {
		win, mine, err := mpi.WinAllocate[int32](w.Comm, 20000)
		require.NoError(t, err)
		other := 1 - w.Rank()
		require.NoError(t, win.Lock(mpi.LockShared, other))
		b := make([]int32, 20000)
		for i := range b {
			b[i] = int32(i)
		}
		r, err := win.Rput(mpi.Of(b), other, mpi.At(0))
		require.NoError(t, err)
		_, err = r.Wait()
		require.NoError(t, err)
		require.NoError(t, win.Flush(other))
		clear(b)
		r, err = win.Rget(mpi.Of(b[:10]), other, mpi.At(100))
		require.NoError(t, err)
		q, err := win.Raccumulate(mpi.Of([]int32{5}), other, mpi.At(0), mpi.Sum)
		require.NoError(t, err)
		was := int32(0)
		s, err := win.RgetAccumulate(mpi.Of([]int32{2}), mpi.Value(&was), other, mpi.At(0), mpi.Prod)
		require.NoError(t, err)
		null, err := win.Rput(mpi.Of(b), mpi.ProcNull, mpi.At(0))
		require.NoError(t, err)
		bad, err := win.Rput(mpi.Of(b), other, mpi.At(1))
		require.ErrorIs(t, err, mpi.ErrRange)
		_, err = bad.Wait()
		require.ErrorIs(t, err, mpi.ErrRange)
		_, err = mpi.WaitAll(r, q, s, null)
		require.NoError(t, err)
		require.Equal(t, int32(109), b[9])
		require.Equal(t, int32(5), was)
		require.NoError(t, win.Unlock(other))
		require.NoError(t, w.Barrier())
		require.NoError(t, win.Lock(mpi.LockShared, w.Rank()))
		require.Equal(t, []int32{10, 1, 2}, mine[:3])
		require.NoError(t, win.Unlock(w.Rank()))
		return win.Free()
	}, "direct", "messages")
}

// TestWinOverlap checks that windows may overlap, and may be created and freed repeatedly.
func TestWinOverlap(t *testing.T) {
	winJob(t, 3, func(t *testing.T, w mpi.World) error {
		mine := make([]int64, 8)
		for range 5 {
			clear(mine)
			low, err := mpi.WinCreate(w.Comm, mine[:6])
			require.NoError(t, err)
			high, err := mpi.WinCreate(w.Comm, mine[2:])
			require.NoError(t, err)
			require.NoError(t, low.Fence())
			require.NoError(t, high.Fence())
			for r := range 3 {
				require.NoError(t, low.Accumulate(mpi.Of([]int64{1, 2}), r, mpi.At(3), mpi.Sum))
				require.NoError(t, high.Accumulate(mpi.Of([]int64{10, 20}), r, mpi.At(1), mpi.Sum))
			}
			require.NoError(t, high.Fence(mpi.NoSucceed))
			require.NoError(t, low.Fence(mpi.NoSucceed))
			require.Equal(t, []int64{0, 0, 0, 33, 66, 0, 0, 0}, mine)
			require.NoError(t, low.Free())
			require.ErrorIs(t, low.Fence(), mpi.ErrWin)
			require.NoError(t, high.Free())
		}
		return nil
	}, "direct", "messages")
}

// TestWinOfSomeRanks has a window on a communicator of some ranks, in another order.
func TestWinOfSomeRanks(t *testing.T) {
	winJob(t, 4, func(t *testing.T, w mpi.World) error {
		c, err := w.Split(w.Rank()%2, -w.Rank())
		require.NoError(t, err)
		win, mine, err := mpi.WinAllocate[int64](c, 1)
		require.NoError(t, err)
		require.NoError(t, win.Fence())
		require.NoError(t, win.Put(mpi.Of([]int64{int64(w.Rank())}), 1-c.Rank(), mpi.At(0)))
		require.NoError(t, win.Fence(mpi.NoSucceed))
		require.EqualValues(t, (w.Rank()+2)%4, mine[0])
		return win.Free()
	}, "direct", "messages")
}

// TestWinManyMessages starts more Puts by message than may be in progress: the others use
// packets, and all complete.
func TestWinManyMessages(t *testing.T) {
	const many, each = 6000, 200
	o := mpi.Options{OneSided: mpi.Messages, RDMA: mpi.RDMAOptions{Eager: 100}}
	job(t, 2, o, func(w mpi.World) error {
		win, mine, err := mpi.WinAllocate[byte](w.Comm, many*each)
		require.NoError(t, err)
		require.NoError(t, win.Fence())
		if w.Rank() == 0 {
			b := make([]byte, each)
			for i := range b {
				b[i] = byte(i + 1)
			}
			for i := range many {
				require.NoError(t, win.Put(mpi.Of(b), 1, mpi.At(i*each)))
			}
		}
		require.NoError(t, win.Fence())
		if w.Rank() == 1 {
			for i, v := range mine {
				if v != byte(i%each+1) {
					t.Errorf("byte %d is %d", i, v)
					break
				}
			}
		}
		return win.Free()
	})
}
