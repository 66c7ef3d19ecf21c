package mpi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// checked are the options of most tests.
var checked = mpi.Options{Check: true}

// wait waits for a nonblocking call.
func wait(r *mpi.Request, err error) error {
	if err == nil {
		_, err = r.Wait()
	}
	return err
}

func made[T any](_ T, err error) error { return err }

// TestMismatch checks that all ranks get the mismatch and can continue.
func TestMismatch(t *testing.T) {
	f, i := func(n int) mpi.Buffer { return mpi.Of(make([]float64, n)) }, func(n int) mpi.Buffer { return mpi.Of(make([]int32, n)) }
	keep := mpi.OpFunc("keep", true, func(_, _ []float64) {})
	for _, c := range []struct {
		name string
		call func(w mpi.World, odd bool) error
		want string // of the error
	}{
		{"call", func(w mpi.World, odd bool) error {
			if odd {
				return w.Allreduce(f(2), f(2), mpi.Sum)
			}
			return w.Bcast(f(3), 2)
		}, "ranks 0 and 2 called bcast of 3 float64 with root 2; rank 1 called allreduce of 2 float64 with sum"},
		{"call", func(w mpi.World, odd bool) error {
			if odd {
				return w.Barrier()
			}
			return w.Allgather(i(1), i(w.Size()))
		}, "ranks 0 and 2 called allgather of 1 int32; rank 1 called barrier"},
		{"root", func(w mpi.World, odd bool) error {
			if odd {
				return w.Bcast(f(3), 1)
			}
			return w.Bcast(f(3), 2)
		}, "ranks 0 and 2 called bcast of 3 float64 with root 2; rank 1 called bcast of 3 float64 with root 1"},
		{"count", func(w mpi.World, odd bool) error {
			n := 3
			if odd {
				n = 4
			}
			return w.Alltoall(f(n*w.Size()), f(n*w.Size()))
		}, "alltoall of 3 float64; rank 1 called alltoall of 4 float64"},
		{"kind", func(w mpi.World, odd bool) error {
			if odd {
				return w.Scan(i(2), i(2), mpi.Max)
			}
			return w.Scan(f(1), f(1), mpi.Max)
		}, "scan of 2 int32 with max"},
		{"operation", func(w mpi.World, odd bool) error {
			if odd {
				return w.Reduce(f(1), f(1), keep, 0)
			}
			return w.Reduce(f(1), f(1), mpi.Sum, 0)
		}, "reduce of 1 float64 with sum, root 0; rank 1 called reduce of 1 float64 with keep, root 0"},
		{"counts", func(w mpi.World, odd bool) error {
			counts := []int{1, 1, 2}
			if odd {
				counts = []int{2, 1, 1}
			}
			return w.ReduceScatter(f(4), f(counts[w.Rank()]), counts, mpi.Sum)
		}, "reduce-scatter of 4 float64 with sum, counts"},
		{"counts", func(w mpi.World, odd bool) error {
			counts := []int{1, 1, 2}
			if odd {
				counts = []int{2, 1, 1}
			}
			return w.Allgatherv(f(counts[w.Rank()]), f(4), counts, nil)
		}, "allgatherv with counts"},
		{"gatherv", func(w mpi.World, odd bool) error {
			n := w.Rank()
			if odd {
				n += 3
			}
			return w.Gatherv(f(n), f(6), []int{0, 1, 2}, nil, 2)
		}, "gatherv: rank 1 sends 4 float64 to rank 2, which expects 1 float64"},
		{"scatterv", func(w mpi.World, odd bool) error {
			if odd {
				return w.Scatterv(mpi.Buffer{}, nil, nil, i(1), 0)
			}
			return w.Scatterv(f(6), []int{0, 1, 2}, nil, f(w.Rank()), 0)
		}, "scatterv: rank 0 sends 1 float64 to rank 1, which expects 1 int32"},
		{"alltoallv", func(w mpi.World, odd bool) error {
			counts := []int{1, 2, 3}
			if odd {
				counts[2] = 4
			}
			return w.Alltoallv(f(7), counts, nil, f(9), []int{w.Rank() + 1, w.Rank() + 1, w.Rank() + 1}, nil)
		}, "alltoallv: rank 1 sends 4 float64 to rank 2, which expects 3 float64"},
		{"alltoallw", func(w mpi.World, odd bool) error {
			b := []mpi.Buffer{f(1), f(1), f(1)}
			if odd {
				b[0] = i(1)
			}
			return w.Alltoallw(b, []mpi.Buffer{f(1), f(1), f(1)})
		}, "alltoallw: rank 1 sends 1 int32 to rank 0, which expects 1 float64"},
		{"in place", func(w mpi.World, odd bool) error {
			b := []mpi.Buffer{f(1), f(1), f(1)}
			if odd {
				b[0] = i(1)
			}
			return w.Alltoallw([]mpi.Buffer{mpi.InPlace}, b)
		}, "alltoallw: rank 1 sends 1 int32 to rank 0, which expects 1 float64; rank 0 sends 1 float64 to rank 1"},
		{"background", func(w mpi.World, odd bool) error {
			if odd {
				return wait(w.Ibarrier())
			}
			return w.Barrier()
		}, "ranks 0 and 2 called barrier; rank 1 called ibarrier"},
		{"persistent", func(w mpi.World, odd bool) error {
			if odd {
				return made(w.BcastInit(f(1), 0))
			}
			return made(w.BcastInit(f(2), 0))
		}, "ranks 0 and 2 called persistent bcast of 2 float64 with root 0; rank 1"},
		{"communicators", func(w mpi.World, odd bool) error {
			if odd {
				return made(w.Dup())
			}
			return made(w.Split(0, 0))
		}, "ranks 0 and 2 called split of 2 int64; rank 1 called dup of 2 uint64 with max"},
	} {
		t.Run(c.name, func(t *testing.T) {
			job(t, 3, checked, func(w mpi.World) error {
				err := c.call(w, w.Rank() == 1)
				require.ErrorIs(t, err, mpi.ErrMismatch)
				require.ErrorContains(t, err, c.want)
				var e *mpi.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, w.Rank(), e.Rank)
				require.Equal(t, 1, strings.Count(err.Error(), "mpi: "), err)
				return w.Barrier()
			})
		})
	}
}

// TestRefused checks that invalid arguments are an error at their rank before any effect, and
// do not block the other ranks.
func TestRefused(t *testing.T) {
	job(t, 3, checked, func(w mpi.World) error {
		for _, call := range []func(root int) error{
			func(root int) error { return w.Bcast(mpi.Of([]int32{1}), root) },
			func(root int) error { return wait(w.Ibcast(mpi.Of([]int32{1}), root)) },
			func(root int) error { return made(w.BcastInit(mpi.Of([]int32{1}), root)) },
		} {
			root := 0
			if w.Rank() == 2 {
				root = 3
			}
			err := call(root)
			if w.Rank() == 2 {
				require.ErrorIs(t, err, mpi.ErrRoot)
				require.ErrorContains(t, err, "with root 3: invalid root: 3, want [0, 3)")
			} else {
				require.ErrorIs(t, err, mpi.ErrMismatch)
				require.ErrorContains(t, err, "rank 2 called")
				require.ErrorContains(t, err, "bcast with invalid arguments")
			}
		}
		color, dims := 1, []int{3}
		if w.Rank() == 1 {
			color, dims = -5, []int{4}
		}
		for err, want := range map[error]error{made(w.Split(color, 0)): mpi.ErrComm, made(w.CartCreate(dims, []bool{true}, false)): mpi.ErrGrid} {
			if w.Rank() != 1 {
				want = mpi.ErrMismatch
				require.ErrorContains(t, err, "with invalid arguments")
			}
			require.ErrorIs(t, err, want)
		}
		return w.Barrier()
	})
}

// TestManyMismatches has many ranks with mismatched calls.
func TestManyMismatches(t *testing.T) {
	job(t, 8, checked, func(w mpi.World) error {
		err := w.Bcast(mpi.Of(make([]int32, []int{1, 1, 1, 5, 1, 6, 7, 8}[w.Rank()])), 0)
		require.ErrorContains(t, err, "ranks 0 to 2 and 4 called bcast of 1 int32 with root 0; rank 3 called")
		require.ErrorContains(t, err, "; and 1 more")
		err = w.Bcast(mpi.Of(make([]int32, w.Rank()%2)), 0)
		require.ErrorContains(t, err, "ranks 0, 2, 4 and 6 called bcast with root 0; ranks 1, 3, 5 and 7")
		return w.Barrier()
	})
}

type point struct {
	X, Y float64
	ID   int64
}

// TestCheckedMessages compares types of messages and of the buffers that receive them.
func TestCheckedMessages(t *testing.T) {
	job(t, 2, checked, func(w mpi.World) error {
		strided := make([]float64, 6)
		for i, c := range []struct {
			send, recv mpi.Buffer
			bytes      int
			want       error
		}{
			{mpi.Of([]float64{1, 2}), mpi.Of([]float64{0, 0, 0}), 16, nil},
			{mpi.Of([]float64{1, 2}), mpi.Of([]int64{0, 0, 0}), 16, mpi.ErrType},
			{mpi.Of([]float64{}), mpi.Of([]int64{0}), 0, nil},
			{mpi.Of([]float64{1, 2, 3}), mpi.Strided(strided, 3, 1, 2), 24, nil},
			{mpi.Of([]float64{1, 2, 3}), mpi.Of([]float64{0, 0}), 16, mpi.ErrTruncated},
			{mpi.Structs([]point{{1, 2, 3}}), mpi.Structs(make([]point, 2)), 24, nil},
			{mpi.Structs([]point{{1, 2, 3}}), mpi.Of(make([]float64, 3)), 24, mpi.ErrType},
			{mpi.Structs([]point{{1, 2, 3}}, "X", "Y"), mpi.Of(make([]float64, 3)), 16, nil},
			{mpi.Bytes([]byte("abc")), mpi.Of([]byte("...")), 3, nil},
		} {
			if w.Rank() == 0 {
				for _, send := range []func(mpi.Buffer, int, int) error{w.Send, w.Ssend, w.Bsend} {
					require.NoError(t, send(c.send, 1, i))
				}
				continue
			}
			s, err := w.Probe(0, i)
			require.NoError(t, err)
			require.Equal(t, c.send.Size(), s.Bytes)
			for range 2 {
				s, err = w.Recv(c.recv, mpi.AnySource, mpi.AnyTag)
				require.ErrorIs(t, err, c.want)
				require.Equal(t, mpi.Status{Source: 0, Tag: i, Bytes: c.bytes}, s)
			}
			m, _, err := w.Mprobe(0, mpi.AnyTag)
			require.NoError(t, err)
			_, err = m.Recv(c.recv)
			require.ErrorIs(t, err, c.want)
		}
		require.Contains(t, [][]float64{{1, 0, 2, 0, 3, 0}, make([]float64, 6)}, strided)

		x := []int32{int32(w.Rank())}
		s, err := w.SendrecvReplace(mpi.Of(x), 1-w.Rank(), 7, 1-w.Rank(), 7)
		require.NoError(t, err)
		require.Equal(t, 4, s.Bytes)
		require.EqualValues(t, 1-w.Rank(), x[0])
		return nil
	})
}

// TestBadArguments checks the sentinel of each invalid argument. Nothing is sent: the ranks
// remain synchronized.
func TestBadArguments(t *testing.T) {
	x, y := mpi.Of(make([]float64, 4)), mpi.Of(make([]float64, 4))
	bad := mpi.Strided(make([]float64, 4), 3, 1, 2)
	twice := mpi.Strided(make([]float64, 4), 3, 2, 1)
	nobody := mpi.Buffer{}
	job(t, 2, mpi.Options{}, func(w mpi.World) error {
		free, err := w.Dup()
		require.NoError(t, err)
		require.NoError(t, free.Free())
		if w.Rank() == 1 {
			for i, c := range []struct {
				err  error
				want error
			}{
				{w.Bcast(x, 2), mpi.ErrRoot},
				{w.Bcast(x, -1), mpi.ErrRoot},
				{w.Bcast(bad, 0), mpi.ErrBuffer},
				{w.Bcast(twice, 0), mpi.ErrBuffer},
				{w.Bcast(mpi.InPlace, 0), mpi.ErrBuffer},
				{w.Gather(x, y, 2), mpi.ErrRoot},
				{w.Gather(x, y, 1), mpi.ErrCount},
				{w.Gather(bad, y, 0), mpi.ErrBuffer},
				{w.Gather(mpi.InPlace, y, 0), mpi.ErrBuffer},
				{w.Gather(mpi.Of(make([]int64, 2)), y, 1), mpi.ErrType},
				{w.Gather(mpi.Of(make([]float64, 2)), twice, 1), mpi.ErrBuffer},
				{w.Gatherv(x, y, []int{1}, nil, 1), mpi.ErrCount},
				{w.Gatherv(x, y, []int{1, 4}, nil, 1), mpi.ErrCount},
				{w.Gatherv(x, y, []int{1, 4}, []int{0}, 1), mpi.ErrCount},
				{w.Gatherv(x, y, []int{1, 4}, []int{0, 1}, 1), mpi.ErrCount},
				{w.Gatherv(x, y, []int{1, 3}, []int{0, 1}, 1), mpi.ErrCount},
				{w.Gatherv(x, y, []int{0, 4}, []int{0, -1}, 1), mpi.ErrCount},
				{w.Gatherv(x, y, []int{-1, 4}, nil, 1), mpi.ErrCount},
				{w.Scatter(x, y, 1), mpi.ErrCount},
				{w.Scatter(x, bad, 0), mpi.ErrBuffer},
				{w.Scatterv(x, []int{4, 1}, nil, y, 1), mpi.ErrCount},
				{w.Scatterv(x, []int{4, 0}, nil, mpi.Of([]int64{}), 5), mpi.ErrRoot},
				{w.Allgather(x, y), mpi.ErrCount},
				{w.Allgather(mpi.InPlace, mpi.Of(make([]float64, 3))), mpi.ErrCount},
				{w.Allgather(y, mpi.InPlace), mpi.ErrBuffer},
				{w.Allgatherv(x, y, []int{1, 1}, nil), mpi.ErrCount},
				{w.Alltoall(x, mpi.Of(make([]float32, 4))), mpi.ErrType},
				{w.Alltoall(x, mpi.Of(make([]float64, 5))), mpi.ErrCount},
				{w.Alltoall(x, x), mpi.ErrBuffer},
				{w.Alltoallv(x, []int{2, 2}, nil, y, []int{1, 3}, nil), mpi.ErrCount},
				{w.Alltoallw([]mpi.Buffer{x}, []mpi.Buffer{x, y}), mpi.ErrCount},
				{w.Alltoallw([]mpi.Buffer{x, bad}, []mpi.Buffer{x, y}), mpi.ErrBuffer},
				{w.Alltoallw([]mpi.Buffer{x, nobody}, []mpi.Buffer{x, y}), mpi.ErrCount},
				{w.Reduce(x, nobody, mpi.Op{}, 0), mpi.ErrOp},
				{w.Reduce(x, nobody, mpi.BAnd, 0), mpi.ErrOp},
				{w.Reduce(x, y.Slice(0, 3), mpi.Sum, 1), mpi.ErrCount},
				{w.Allreduce(x, y, mpi.LAnd), mpi.ErrOp},
				{w.Allreduce(x, y, mpi.OpFunc("f", true, func(_, _ []int64) {})), mpi.ErrOp},
				{w.Allreduce(x, y.Slice(0, 3), mpi.Sum), mpi.ErrCount},
				{w.Allreduce(x, mpi.Of(make([]int64, 4)), mpi.Sum), mpi.ErrType},
				{w.ReduceScatter(x, y, []int{1, 2}, mpi.Sum), mpi.ErrCount},
				{w.ReduceScatter(x, y.Slice(0, 2), []int{1, 2}, mpi.Sum), mpi.ErrCount},
				{w.ReduceScatter(x, y.Slice(0, 5), []int{2, 2}, mpi.Sum), mpi.ErrBuffer},
				{w.ReduceScatterBlock(x, y, mpi.Sum), mpi.ErrCount},
				{w.ReduceScatterBlock(mpi.InPlace, y.Slice(0, 3), mpi.Sum), mpi.ErrCount},
				{w.Scan(x, y.Slice(0, 1), mpi.Sum), mpi.ErrCount},
				{free.Barrier(), mpi.ErrFreed},
				{free.Send(x, 0, 0), mpi.ErrFreed},
				{free.Free(), mpi.ErrFreed},
				{made(free.Dup()), mpi.ErrFreed},
				{w.Free(), mpi.ErrComm},
				{w.Self.Free(), mpi.ErrComm},
				{made(w.Split(-7, 0)), mpi.ErrComm},
				{made(w.CartCreate([]int{3}, []bool{true}, false)), mpi.ErrGrid},
				{made(w.CartCreate([]int{0}, []bool{true}, false)), mpi.ErrGrid},
				{made(w.CartCreate([]int{2}, nil, false)), mpi.ErrGrid},
				{w.Send(x, 2, 0), mpi.ErrRank},
				{w.Send(x, 0, -1), mpi.ErrTag},
				{made(w.Recv(bad, 0, 0)), mpi.ErrBuffer},
				{made(w.SendrecvReplace(twice, 0, 0, 0, 0)), mpi.ErrBuffer},
				{made(w.Ireduce(x, nobody, mpi.Op{}, 0)), mpi.ErrOp},
				{made(w.ReduceInit(x, nobody, mpi.Op{}, 0)), mpi.ErrOp},
			} {
				if !errors.Is(c.err, c.want) {
					return fmt.Errorf("case %d: %v is not %v", i, c.err, c.want)
				}
				var e *mpi.Error
				require.ErrorAs(t, c.err, &e)
			}
		}
		// Waiting for a request that failed to start returns its error.
		r, err := w.Irecv(x, 2, 0)
		require.ErrorIs(t, err, mpi.ErrRank)
		_, again := mpi.WaitAll(r)
		require.EqualError(t, again, err.Error())
		require.ErrorContains(t, err, " of world: receive from 2, tag 0: invalid rank")
		return w.Bcast(x, 0)
	})
}
