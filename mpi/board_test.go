package mpi_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/internal/shm"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// needBoards skips a test if processes cannot share memory, and overrides an environment that
// disables shared memory.
func needBoards(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such memory")
	}
	t.Setenv("SOFTRNIC_MPI_SHARED", "on")
}

// createSharedMemory makes calls until the communicator has shared memory.
func createSharedMemory(c *mpi.Comm) error {
	for range mpi.BoardAfter {
		if err := c.Barrier(); err != nil {
			return err
		}
	}
	if !mpi.Shares(c) {
		return fmt.Errorf("%s has no shared memory", c.Name())
	}
	return nil
}

// sumOfRanks adds up the numbers of the ranks, with the given operation.
func sumOfRanks(c *mpi.Comm, add mpi.Op) error {
	x := []int64{int64(c.Rank())}
	if err := c.Allreduce(mpi.InPlace, mpi.Of(x), add); err != nil {
		return err
	}
	if n := int64(c.Size()); x[0] != n*(n-1)/2 {
		return fmt.Errorf("the sum is %d", x[0])
	}
	return nil
}

// TestBoardRoom checks that the shared memory of a communicator is bounded.
func TestBoardRoom(t *testing.T) {
	for ranks, room := range map[int]int{2: 64 << 10, 16: 64 << 10, 17: 61632, 61: 17152, 1024: 1 << 10, 5000: 1 << 10} {
		require.Equal(t, room, mpi.BoardRoom(ranks), ranks)
	}
	require.Less(t, shm.BoardSize(1024, mpi.BoardRoom(1024)), 2300<<10)
}

// TestBoardCollectives runs collective calls in shared memory, with and without Options.Check.
func TestBoardCollectives(t *testing.T) {
	needBoards(t)
	for _, n := range []int{2, 3, 5, 8} {
		for _, o := range []mpi.Options{{}, checked} {
			job(t, n, o, func(w mpi.World) error {
				require.NoError(t, createSharedMemory(w.Comm))
				return everyCollective(w.Comm, w.Rank(), n, trials(n))
			})
		}
	}
}

// TestBoardChunks combines vectors of several slots in shared memory, of lengths that no number of ranks
// divides, between calls that need one slot.
func TestBoardChunks(t *testing.T) {
	needBoards(t)
	for _, n := range []int{2, 3, 5} {
		job(t, n, mpi.Options{}, func(w mpi.World) error {
			require.NoError(t, createSharedMemory(w.Comm))
			for _, bytes := range []int{1, 5 << 10, mpi.BoardRoom(n), mpi.BoardRoom(n) + 1, 5*mpi.BoardRoom(n) + 7, 3} {
				x := make([]int8, bytes)
				for i := range x {
					x[i] = int8(i + w.Rank())
				}
				if err := w.Allreduce(mpi.InPlace, mpi.Of(x), mpi.Sum); err != nil {
					return err
				}
				for i, got := range x {
					if want := int8(n*i + n*(n-1)/2); got != want {
						return fmt.Errorf("%d bytes: element %d is %d, not %d", bytes, i, got, want)
					}
				}
			}
			return nil
		})
	}
}

// TestBoardsOfManyCommunicators runs calls on several communicators with shared memory
// concurrently, beside nonblocking calls. Free releases the memory.
func TestBoardsOfManyCommunicators(t *testing.T) {
	needBoards(t)
	const n, comms = 4, 3
	job(t, n, mpi.Options{}, func(w mpi.World) error {
		var list []*mpi.Comm
		for range comms {
			c, err := w.Dup()
			require.NoError(t, err)
			list = append(list, c)
		}
		half, err := w.Split(w.Rank()%2, 0)
		require.NoError(t, err)
		require.NoError(t, createSharedMemory(half))
		errs := make([]error, comms)
		var all sync.WaitGroup
		for i, c := range list {
			all.Go(func() {
				for k := range 100 {
					x := []int64{int64(i*1000 + k)}
					background, err := c.Ibarrier()
					if err == nil {
						err = c.Allreduce(mpi.InPlace, mpi.Of(x), mpi.Sum)
					}
					if err == nil {
						_, err = background.Wait()
					}
					if want := int64(n * (i*1000 + k)); err == nil && x[0] != want {
						err = fmt.Errorf("%d, not %d", x[0], want)
					}
					if errs[i] = err; err != nil {
						return
					}
				}
			})
		}
		all.Wait()
		for i, c := range list {
			if !mpi.Shares(c) {
				errs[i] = errors.Join(errs[i], errors.New("it has no shared memory"))
			}
			errs = append(errs, c.Free())
			if mpi.Shares(c) {
				errs = append(errs, errors.New("it has memory after it was freed"))
			}
		}
		return errors.Join(append(errs, half.Free())...)
	})
}

// TestBoardSleepers checks that waiters sleep, make progress and are woken.
func TestBoardSleepers(t *testing.T) {
	needBoards(t)
	const n = 4
	job(t, n, mpi.Options{}, func(w mpi.World) error {
		require.NoError(t, createSharedMemory(w.Comm))
		for late := range 2 * n {
			if late %= n; w.Rank() == late {
				for mpi.Sleepers(w.Comm) < n-1 {
					runtime.Gosched()
				}
			}
			require.NoError(t, sumOfRanks(w.Comm, mpi.Sum))
		}
		return nil
	})
}

// TestBoardMismatch checks that all ranks get an error if their calls differ, also where messages
// would be waited for forever.
func TestBoardMismatch(t *testing.T) {
	needBoards(t)
	const n = 3
	var heard sync.WaitGroup
	heard.Add(n)
	job(t, n, mpi.Options{}, func(w mpi.World) error {
		require.NoError(t, createSharedMemory(w.Comm))
		x := make([]byte, 8+w.Rank()/2)
		err := w.Allreduce(mpi.InPlace, mpi.Of(x), mpi.Sum)
		heard.Done()
		heard.Wait()
		if !errors.Is(err, mpi.ErrMismatch) {
			return fmt.Errorf("it was %w", err)
		}
		require.Regexp(t, "rank (2 calls allreduce with count 9, rank [01] with count 8|[01] calls allreduce with count 8, rank 2 with count 9)", err.Error())
		return w.Barrier() // Bcast with another root is a different call
	})
}

// TestBoardChecked compares calls while some ranks make theirs nonblocking, without shared
// memory.
func TestBoardChecked(t *testing.T) {
	needBoards(t)
	job(t, 3, checked, func(w mpi.World) error {
		require.NoError(t, createSharedMemory(w.Comm))
		x := []int32{1}
		if w.Rank() == 1 {
			_, err := w.Iallreduce(mpi.InPlace, mpi.Of(x), mpi.Sum)
			require.NoError(t, err)
			r, err := w.Ibarrier()
			if err == nil {
				_, err = r.Wait()
			}
			require.NoError(t, err)
			return nil
		}
		require.ErrorIs(t, w.Allreduce(mpi.InPlace, mpi.Of(x), mpi.Sum), mpi.ErrMismatch)
		r, err := w.Ibarrier()
		if err == nil {
			_, err = r.Wait()
		}
		return err
	})
}

// TestFinalizeBesideBarrier checks that a rank in a barrier gets an error when another rank calls
// Finalize.
func TestFinalizeBesideBarrier(t *testing.T) {
	needBoards(t)
	err := pmi.RunLocal(3, grace, func(m pmi.Manager) error {
		w, err := mpi.Init(open, mpi.Options{Manager: m})
		if err == nil {
			err = createSharedMemory(w.Comm)
		}
		if err != nil {
			return err
		}
		defer w.Vanish()
		if w.Rank() == 1 {
			err = w.Finalize()
			require.ErrorContains(t, err, "finalize")
		} else {
			err = w.Barrier()
			require.ErrorContains(t, err, "finalize")
		}
		require.ErrorIs(t, err, mpi.ErrMismatch)
		return nil
	})
	require.NoError(t, err)
}

// TestFinalizePanics checks that a rank that panics ends the job in its deferred Finalize.
func TestFinalizePanics(t *testing.T) {
	err := pmi.RunLocal(2, grace, func(m pmi.Manager) (err error) {
		w, err := mpi.Init(open, mpi.Options{Manager: m})
		if err != nil {
			return err
		}
		defer w.Vanish()
		if w.Rank() == 0 {
			_, err := w.Recv(mpi.Of([]byte{0}), 1, 1)
			return err
		}
		defer func() { err = fmt.Errorf("it went on to panic: %v", recover()) }()
		func() {
			defer w.Finalize()
			panic("out of paper")
		}()
		return nil
	})
	require.ErrorContains(t, err, "it went on to panic: out of paper")
	require.ErrorContains(t, err, "rank 1 panics: out of paper")
}

// TestBoardBesideGroup checks that wake-up messages do not match messages of CreateGroup with
// any tag.
func TestBoardBesideGroup(t *testing.T) {
	needBoards(t)
	job(t, 3, mpi.Options{}, func(w mpi.World) error {
		require.NoError(t, createSharedMemory(w.Comm))
		g, err := w.Group().Incl(0, 1)
		require.NoError(t, err)
		for _, tag := range []int{0, 1, 1<<28 - 1} {
			asleep := make(chan error, 1)
			if w.Rank() == 1 { // the others sleep until its event
				asleep <- nil
			} else {
				go func() { asleep <- w.Barrier() }()
			}
			if w.Rank() < 2 {
				for mpi.Sleepers(w.Comm) < 2 {
					runtime.Gosched()
				}
				c, err := w.CreateGroup(g, tag)
				if err == nil {
					err = c.Barrier()
				}
				require.NoError(t, err)
			}
			if w.Rank() == 1 {
				err = w.Barrier()
			}
			err = errors.Join(err, <-asleep)
			require.NoError(t, err)
			_, err := w.Sendrecv(mpi.Of([]byte{0}), (w.Rank()+1)%3, 1, mpi.Of([]byte{0}), (w.Rank()+2)%3, 1)
			require.NoError(t, err)
		}
		return nil
	})
}

// TestBoardProgress checks that a rank that never waits still polls the network.
func TestBoardProgress(t *testing.T) {
	needBoards(t)
	job(t, 2, mpi.Options{Net: mpi.TCP}, func(w mpi.World) error {
		require.NoError(t, createSharedMemory(w.Comm))
		var r *mpi.Request
		var err error
		if big := make([]byte, 4<<20); w.Rank() == 0 {
			r, err = w.Isend(mpi.Of(big), 1, 1)
		} else {
			r, err = w.Irecv(mpi.Of(big), 0, 1)
		}
		require.NoError(t, err)
		done := []int32{0}
		for calls := 0; done[0] == 0; calls++ {
			if calls == 200 {
				return errors.New("the message is still in flight after 200 calls")
			}
			if w.Rank() == 0 {
				for mpi.Sleepers(w.Comm) < 1 {
					runtime.Gosched()
				}
			} else if _, ok, err := r.Test(); err != nil {
				return err
			} else if ok {
				done[0] = 1
			}
			require.NoError(t, w.Allreduce(mpi.InPlace, mpi.Of(done), mpi.Sum))
		}
		_, err = r.Wait()
		return err
	})
}

// TestUnreachableBoards checks that the shared memory of an unreachable communicator is released.
func TestUnreachableBoards(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	needBoards(t)
	mappings := func() int {
		maps, err := os.ReadFile("/proc/self/maps") // see proc(5)
		require.NoError(t, err)
		return strings.Count(string(maps), "memfd:softrnic")
	}
	const comms = 5
	job(t, 2, mpi.Options{}, func(w mpi.World) error {
		if err := createSharedMemory(w.Comm); err != nil { // which stays open
			return err
		}
		for range 2 { // mapped by earlier tests
			runtime.GC()
		}
		before := mappings()
		for range comms {
			c, err := w.Dup()
			if err == nil {
				err = createSharedMemory(c)
			}
			require.NoError(t, err)
		}
		if w.Rank() == 0 {
			for mappings() > before {
				runtime.GC()
			}
		}
		return w.Barrier()
	})
}

// TestBoardUserOps checks that user-defined operations cannot write to memory that other ranks
// read.
func TestBoardUserOps(t *testing.T) {
	needBoards(t)
	const n = 4
	op := mpi.OpFunc("sum", true, func(in, inout []int64) {
		for i := range in {
			inout[i] += in[i]
			in[i] = -1
		}
	})
	job(t, n, mpi.Options{}, func(w mpi.World) error {
		require.NoError(t, createSharedMemory(w.Comm))
		for range 100 {
			require.NoError(t, sumOfRanks(w.Comm, op))
		}
		return nil
	})
}

// TestNoBoards checks that shared memory needs one node, equal options and a segment, and that
// the segment has no name afterwards.
func TestNoBoards(t *testing.T) {
	needBoards(t)
	const n = 4
	without := func(w mpi.World) error {
		for range 2 * mpi.BoardAfter {
			if err := w.Barrier(); err != nil {
				return err
			}
		}
		if mpi.Shares(w.Comm) {
			return errors.New("shared memory is in use")
		}
		return nil
	}
	job(t, n, mpi.Options{NoShared: true}, without)
	t.Run("nodes", func(t *testing.T) {
		require.NoError(t, pmi.RunLocal(n, grace, func(m pmi.Manager) error {
			return rank(open, mpi.Options{Manager: nodes{m}}, func(w mpi.World) error {
				half, err := w.Split(w.Rank()%2, 0)
				if err == nil {
					err = errors.Join(without(w), createSharedMemory(half))
				}
				return err
			})
		}))
	})
	t.Run("one cannot", func(t *testing.T) {
		var calls atomic.Int32
		open := func(name string, size int) (*shm.Segment, error) {
			if calls.Add(1) == 2 {
				return nil, shm.ErrUnavailable
			}
			return shm.Open(name, size)
		}
		job(t, n, mpi.Options{}, func(w mpi.World) error {
			w.OpenSegments(open)
			return without(w)
		})
		require.EqualValues(t, n-1, calls.Load())
	})
	t.Run("names", func(t *testing.T) {
		var name atomic.Value
		job(t, 2, mpi.Options{}, func(w mpi.World) error {
			w.OpenSegments(func(x string, size int) (*shm.Segment, error) {
				name.Store(x)
				return shm.Open(x, size)
			})
			return createSharedMemory(w.Comm)
		})
		_, err := shm.Open(name.Load().(string), shm.BoardSize(2, mpi.BoardRoom(2)))
		require.ErrorIs(t, err, shm.ErrUnavailable)
	})
}
