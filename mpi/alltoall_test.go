package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// exchange is one call of Alltoall. number counts the calls with the same data.
type exchange struct {
	rank, size int
	bytes      int // of a block
	number     int
}

// content is the memory from which all blocks are taken.
var content = func() []byte {
	b, rng := make([]byte, 2<<20), rand.NewPCG(1, 2)
	for i := range b {
		b[i] = byte(rng.Uint64())
	}
	return b
}()

// block returns the block that one rank sends to another.
func (x exchange) block(from, to int) []byte {
	return content[from*31+to*7+x.number*13:][:x.bytes]
}

// fill fills a send buffer.
func (x exchange) fill(send []byte) {
	for to := range x.size {
		copy(send[to*x.bytes:], x.block(x.rank, to))
	}
}

// check compares a receive buffer with the expected blocks.
func (x exchange) check(recv []byte) error {
	for from := range x.size {
		if !bytes.Equal(x.block(from, x.rank), recv[from*x.bytes:][:x.bytes]) {
			return fmt.Errorf("%+v: what rank %d has sent is not what has come", x, from)
		}
	}
	return nil
}

// forms are the forms of a call: blocking, nonblocking and persistent.
func forms(c *mpi.Comm) []collectiveCaller {
	return []collectiveCaller{c, formed{c, false}, formed{c, true}}
}

// exchanges makes successive calls with the same memory, with other memory, and in place, while
// receives from any source with any tag wait for messages that are sent at the end.
func exchanges(c *mpi.Comm, size int, call collectiveCaller) error {
	rank, n := c.Rank(), c.Size()
	other := []byte{0}
	any, err := c.Irecv(mpi.Bytes(other), mpi.AnySource, mpi.AnyTag)
	if err != nil {
		return err
	}
	send := make([]byte, n*size)
	recv := [2][]byte{make([]byte, n*size), make([]byte, n*size)}
	for number, into := range []int{0, 0, 1, 1, 0, 1} {
		x := exchange{rank, n, size, number}
		x.fill(send)
		if rank%2 == 0 && number > 3 { // only some rounds change it
			into = 1 - into
		}
		if err := call.Alltoall(mpi.Bytes(send), mpi.Bytes(recv[into])); err != nil {
			return err
		}
		if err := x.check(recv[into]); err != nil {
			return err
		}
		if number == 2 {
			x.fill(recv[1])
			if err := call.Alltoall(mpi.InPlace, mpi.Bytes(recv[1])); err != nil {
				return err
			}
			if err := x.check(recv[1]); err != nil {
				return err
			}
		}
	}
	if err := c.Send(mpi.Bytes([]byte{byte(7 + rank)}), (rank+1)%n, 5); err != nil {
		return err
	}
	s, err := any.Wait()
	if err == nil && (s.Source != (rank+n-1)%n || s.Tag != 5 || int(other[0]) != 7+s.Source) {
		err = fmt.Errorf("%+v has come, with %d", s, other[0])
	}
	return err
}

// everyAlltoall makes calls of all sizes by several algorithms.
func everyAlltoall(w mpi.World, sizes []int, algorithms ...string) error {
	for _, name := range algorithms {
		w.Choose(coll.Choices{coll.Alltoall: name})
		c, err := w.Dup()
		if err != nil {
			return err
		}
		for _, size := range sizes {
			for form, call := range forms(c) {
				if err := exchanges(c, size, call); err != nil {
					return fmt.Errorf("%s, form %d, %d bytes: %w", name, form, size, err)
				}
			}
		}
		if err := c.Free(); err != nil {
			return err
		}
	}
	return nil
}

func TestAlltoallRDMA(t *testing.T) {
	for n := 1; n <= 8; n++ {
		sizes := []int{0, 1000}
		if n < 4 {
			sizes = append(sizes, 255, 70_000)
		}
		job(t, n, mpi.Options{}, func(w mpi.World) error { return everyAlltoall(w, sizes, "rdma") })
	}
	job(t, 16, mpi.Options{}, func(w mpi.World) error { return everyAlltoall(w, []int{64}, "rdma") })
	job(t, 2, mpi.Options{}, func(w mpi.World) error {
		return everyAlltoall(w, []int{1 << 20}, "rdma", "direct", "pairwise", "bruck")
	})
}

func TestAlltoallUD(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		job(t, n, mpi.Options{Net: mpi.UD}, func(w mpi.World) error { return everyAlltoall(w, []int{0, 255, 9000}, "ud") })
	}
}

func TestAlltoallHybrid(t *testing.T) {
	for _, c := range []struct {
		n, limit, size int
		name           string
	}{
		{2, 1, 40_000, "hybrid"}, {5, 2, 20_000, "hybrid"}, {8, 3, 255, "hybrid"}, {3, 0, 9000, "hybrid"}, {4, 0, 255, "ud"},
		{3, 9, 9000, "hybrid"}, {3, 9, 9000, "rdma"}, {3, 2, 255, "rdma"}, // the last size needs another algorithm
	} {
		job(t, c.n, mpi.Options{Net: mpi.Hybrid, RCLimit: c.limit}, func(w mpi.World) error {
			require.NoError(t, everyAlltoall(w, []int{0, c.size}, c.name))
			require.LessOrEqual(t, w.Stats().Connections, uint64(c.limit))
			return nil
		})
	}
}

// TestAlltoallRTSRTR tests the algorithm in which ranks send in turns.
func TestAlltoallRTSRTR(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		job(t, n, mpi.Options{}, func(w mpi.World) error { return everyAlltoall(w, []int{0, 255, 20_000}, "rtsrtr") })
	}
}

// TestAlltoallTCP checks that another algorithm is used on nets without RDMA.
func TestAlltoallTCP(t *testing.T) {
	job(t, 3, mpi.Options{Net: mpi.TCP}, func(w mpi.World) error {
		return everyAlltoall(w, []int{255}, "rdma", "rtsrtr", "ud", "hybrid")
	})
}

// TestAlltoallRegistrations checks that memory is registered once if the calls have the same
// memory.
func TestAlltoallRegistrations(t *testing.T) {
	const n, calls = 4, 20
	job(t, n, mpi.Options{Algorithms: map[string]string{"alltoall": "rdma"}}, func(w mpi.World) error {
		send, recv := make([]byte, n<<14), make([]byte, n<<14)
		for i := range calls {
			x := exchange{w.Rank(), n, 1 << 14, i}
			x.fill(send)
			require.NoError(t, w.Alltoall(mpi.Bytes(send), mpi.Bytes(recv)))
			require.NoError(t, x.check(recv))
		}
		require.EqualValues(t, 2, w.Stats().Registrations)
		return nil
	})
}

// TestAlltoallMismatch checks that nothing is written if ranks have different sizes.
func TestAlltoallMismatch(t *testing.T) {
	const n = 4
	job(t, n, mpi.Options{Algorithms: map[string]string{"alltoall": "rdma"}}, func(w mpi.World) error {
		size := 500 + w.Rank()/3
		memory := make([]byte, 2*n*1000)
		err := w.Alltoall(mpi.Bytes(make([]byte, n*size)), mpi.Bytes(memory[n*1000:][:n*size]))
		require.ErrorIs(t, err, mpi.ErrMismatch)
		require.ErrorContains(t, err, "rank 3")
		for i, b := range memory[n*1000+n*size:] {
			require.Zero(t, b, i)
		}
		return w.Barrier()
	})
}

func TestAlltoallLoss(t *testing.T) {
	open, faults := impaired("loss 1% seed 3")
	jobOn(t, open, 4, mpi.Options{}, func(w mpi.World) error {
		return everyAlltoall(w, []int{40, 30_000}, "rdma", "direct", "rtsrtr")
	})
	jobOn(t, open, 4, mpi.Options{Net: mpi.Hybrid, RCLimit: 2}, func(w mpi.World) error { return everyAlltoall(w, []int{40, 30_000}, "hybrid") })
	jobOn(t, open, 3, mpi.Options{Net: mpi.UD}, func(w mpi.World) error { return everyAlltoall(w, []int{40, 30_000}, "ud") })
	require.NotZero(t, faults().Lost)
}

// TestAlltoallLostRank fails a rank during calls and checks that all other ranks get an error in
// every kind of wait.
func TestAlltoallLostRank(t *testing.T) {
	soon := mpi.UDOptions{GiveUp: 2 * time.Second}
	for name, o := range map[string]mpi.Options{
		"rdma": {}, "direct": {}, "rtsrtr": {}, "pairwise": {}, "bruck": {}, "ud": {Net: mpi.UD, UD: soon}, "hybrid": {Net: mpi.Hybrid, RCLimit: 2, UD: soon},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Algorithms = map[string]string{"alltoall": name}
			lostOne(t, 5, o)
		})
	}
}

// lostOne runs a job whose last rank fails after a few calls.
func lostOne(t *testing.T, n int, o mpi.Options) {
	t.Helper()
	require.NoError(t, loseLast(n, o, func(w mpi.World) (func(<-chan struct{}) error, error) {
		send, recv := make([]byte, n*3000), make([]byte, n*3000)
		call := func() error { return w.Alltoall(mpi.Bytes(send), mpi.Bytes(recv)) }
		for range 3 {
			if err := call(); err != nil {
				return nil, err
			}
		}
		return func(<-chan struct{}) error {
			var err error
			for err == nil {
				err = call()
			}
			if !errors.Is(err, mpi.ErrLost) || !strings.Contains(err.Error(), fmt.Sprint("rank ", n-1)) {
				return err
			}
			if again := call(); !errors.Is(again, mpi.ErrLost) {
				return fmt.Errorf("the later call returned %w", again)
			}
			return nil
		}, nil
	}))
}

// TestAlltoallOfNothing checks every algorithm with blocks of no bytes.
func TestAlltoallOfNothing(t *testing.T) {
	for _, name := range []string{"bruck", "direct", "pairwise"} {
		t.Setenv("SOFTRNIC_MPI_COLL", "alltoall="+name)
		job(t, 3, mpi.Options{NoShared: true}, func(w mpi.World) error {
			return w.Alltoall(mpi.Bytes(nil), mpi.Bytes(nil))
		})
	}
}
