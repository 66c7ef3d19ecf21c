package mpi_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// formed makes nonblocking calls, or persistent calls that it starts twice.
type formed struct {
	c    *mpi.Comm
	kept bool
}

func (f formed) call(name string, args ...any) error {
	method := "I" + strings.ToLower(name[:1]) + name[1:]
	if f.kept {
		method = name + "Init"
	}
	in := make([]reflect.Value, len(args))
	for i, a := range args {
		in[i] = reflect.ValueOf(a)
	}
	out := reflect.ValueOf(f.c).MethodByName(method).Call(in)
	if err, ok := out[1].Interface().(error); ok {
		return err
	}
	r := out[0].Interface().(*mpi.Request)
	if f.kept {
		if _, err := r.Wait(); err != nil {
			return fmt.Errorf("an inactive request: %w", err)
		}
		if err := r.Start(); err != nil {
			return err
		}
	}
	_, err := r.Wait()
	if err == nil && f.kept {
		err = r.Free()
	}
	return err
}

func (f formed) Barrier() error                     { return f.call("Barrier") }
func (f formed) Bcast(b mpi.Buffer, root int) error { return f.call("Bcast", b, root) }
func (f formed) Gather(s, r mpi.Buffer, root int) error {
	return f.call("Gather", s, r, root)
}
func (f formed) Gatherv(s, r mpi.Buffer, n, at []int, root int) error {
	return f.call("Gatherv", s, r, n, at, root)
}
func (f formed) Scatter(s, r mpi.Buffer, root int) error {
	return f.call("Scatter", s, r, root)
}
func (f formed) Scatterv(s mpi.Buffer, n, at []int, r mpi.Buffer, root int) error {
	return f.call("Scatterv", s, n, at, r, root)
}
func (f formed) Allgather(s, r mpi.Buffer) error { return f.call("Allgather", s, r) }
func (f formed) Allgatherv(s, r mpi.Buffer, n, at []int) error {
	return f.call("Allgatherv", s, r, n, at)
}
func (f formed) Alltoall(s, r mpi.Buffer) error { return f.call("Alltoall", s, r) }
func (f formed) Alltoallv(s mpi.Buffer, n, at []int, r mpi.Buffer, m, to []int) error {
	return f.call("Alltoallv", s, n, at, r, m, to)
}
func (f formed) Alltoallw(s, r []mpi.Buffer) error { return f.call("Alltoallw", s, r) }
func (f formed) Reduce(s, r mpi.Buffer, op mpi.Op, root int) error {
	return f.call("Reduce", s, r, op, root)
}
func (f formed) Allreduce(s, r mpi.Buffer, op mpi.Op) error { return f.call("Allreduce", s, r, op) }
func (f formed) ReduceScatter(s, r mpi.Buffer, n []int, op mpi.Op) error {
	return f.call("ReduceScatter", s, r, n, op)
}
func (f formed) ReduceScatterBlock(s, r mpi.Buffer, op mpi.Op) error {
	return f.call("ReduceScatterBlock", s, r, op)
}
func (f formed) Scan(s, r mpi.Buffer, op mpi.Op) error   { return f.call("Scan", s, r, op) }
func (f formed) Exscan(s, r mpi.Buffer, op mpi.Op) error { return f.call("Exscan", s, r, op) }

func TestForms(t *testing.T) {
	for _, n := range []int{1, 4} {
		job(t, n, mpi.Options{}, func(w mpi.World) error {
			for _, kept := range []bool{false, true} {
				require.NoError(t, everyCollective(formed{w.Comm, kept}, w.Rank(), n, trials(n)))
			}
			return nil
		})
	}
}

// TestBackground waits for several nonblocking calls on one communicator in another order at
// each rank, between messages.
func TestBackground(t *testing.T) {
	const n, calls = 4, 12
	job(t, n, checked, func(w mpi.World) error {
		rng := rand.New(rand.NewPCG(1, uint64(w.Rank())))
		for range 5 {
			var rs []*mpi.Request
			sums, pieces := make([]int64, calls), make([]int64, calls*n)
			for i := range calls {
				r, err := w.Iallreduce(mpi.Of([]int64{int64(w.Rank() * i)}), mpi.Of(sums[i:i+1]), mpi.Sum)
				require.NoError(t, err)
				s, err := w.Iallgather(mpi.Of([]int64{int64(w.Rank() + i)}), mpi.Of(pieces[i*n:][:n]))
				require.NoError(t, err)
				rs = append(rs, r, s)
			}
			got := []int64{0}
			in, err := w.Irecv(mpi.Of(got), (w.Rank()+1)%n, 3)
			require.NoError(t, err)
			out, err := w.Isend(mpi.Of([]int64{int64(w.Rank())}), (w.Rank()+n-1)%n, 3)
			require.NoError(t, err)
			require.NoError(t, w.Barrier())
			rs = append(rs, in, out)
			rng.Shuffle(len(rs), func(i, j int) { rs[i], rs[j] = rs[j], rs[i] })
			for range rs[:5] {
				i, _, err := mpi.WaitAny(rs...)
				require.NoError(t, err)
				rs[i] = nil
			}
			_, err = mpi.WaitAll(rs...)
			require.NoError(t, err)
			require.EqualValues(t, (w.Rank()+1)%n, got[0])
			for i := range calls {
				require.EqualValues(t, i*n*(n-1)/2, sums[i])
				for r := range n {
					require.EqualValues(t, r+i, pieces[i*n+r])
				}
			}
		}
		return nil
	})
}

// TestProgress checks that a nonblocking call progresses while the program computes: data
// passes along a chain of ranks.
func TestProgress(t *testing.T) {
	const last = 3
	there := make(chan struct{})
	job(t, last+1, mpi.Options{Algorithms: map[string]string{"bcast": "chain"}}, func(w mpi.World) error {
		b := make([]int64, 20_000)
		if w.Rank() == last {
			defer close(there)
		}
		if w.Rank() == 0 {
			copy(b, vector(0, 0, len(b)))
		}
		r, err := w.Ibcast(mpi.Of(b), 0)
		require.NoError(t, err)
		if w.Rank() != last {
			<-there
		}
		_, err = r.Wait()
		require.Equal(t, vector(0, 0, len(b)), b)
		return err
	})
}

func TestPersistent(t *testing.T) {
	const n = 3
	job(t, n, checked, func(w mpi.World) error {
		next, before := (w.Rank()+1)%n, (w.Rank()+n-1)%n
		out, in, sum := []int64{0}, []int64{0}, []int64{0}
		send, err := w.SendInit(mpi.Of(out), next, 1)
		require.NoError(t, err)
		recv, err := w.RecvInit(mpi.Of(in), before, 1)
		require.NoError(t, err)
		all, err := w.AllreduceInit(mpi.Of(out), mpi.Of(sum), mpi.Sum)
		require.NoError(t, err)
		barrier, err := w.BarrierInit()
		require.NoError(t, err)
		i, _, err := mpi.WaitAny(send, recv, all)
		require.NoError(t, err)
		require.Equal(t, mpi.Undefined, i, "none is active")
		rs := []*mpi.Request{send, recv, all, barrier}
		for round := range 10 {
			out[0] = int64(w.Rank() * round)
			list := append([]*mpi.Request(nil), rs...)
			rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			require.NoError(t, mpi.StartAll(list...))
			require.ErrorIs(t, all.Start(), mpi.ErrRequest)
			_, err := mpi.WaitAll(rs...)
			require.NoError(t, err)
			require.EqualValues(t, before*round, in[0])
			require.EqualValues(t, round*n*(n-1)/2, sum[0])
		}
		for _, r := range rs {
			require.NoError(t, r.Free())
			require.ErrorIs(t, r.Start(), mpi.ErrRequest)
		}
		return nil
	})
}

// TestPersistentSends tests the other modes of persistent sends, to ProcNull and to the rank
// itself.
func TestPersistentSends(t *testing.T) {
	job(t, 1, checked, func(w mpi.World) error {
		out, in := []int32{0}, []int32{0}
		for i, init := range []func(mpi.Buffer, int, int) (*mpi.Request, error){w.SendInit, w.SsendInit, w.RsendInit, w.BsendInit} {
			send, err := init(mpi.Of(out), 0, i)
			require.NoError(t, err)
			recv, err := w.RecvInit(mpi.Of(in), mpi.AnySource, i)
			require.NoError(t, err)
			nobody, err := init(mpi.Of(out), mpi.ProcNull, i)
			require.NoError(t, err)
			for range 3 {
				out[0]++
				require.NoError(t, mpi.StartAll(nobody, recv, send))
				_, err := mpi.WaitAll(send, nobody)
				require.NoError(t, err)
				s, err := recv.Wait()
				require.NoError(t, err)
				require.Equal(t, mpi.Status{Tag: i, Bytes: 4}, s)
				require.Equal(t, out, in)
			}
			_, err = init(mpi.Of(out), 1, i)
			require.ErrorIs(t, err, mpi.ErrRank)
		}
		return nil
	})
}
