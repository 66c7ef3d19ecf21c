package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/verbs"
)

// inTurns selects the alltoall in which ranks send in turns to a shared receive queue.
var inTurns = mpi.Options{Algorithms: map[string]string{"alltoall": "rtsrtr"}}

// swap is an alltoall with memory of its own.
type swap struct {
	exchange
	send, recv []byte
	c          *mpi.Comm
}

func newSwap(c *mpi.Comm, bytes, number int) *swap {
	s := &swap{exchange: exchange{c.Rank(), c.Size(), bytes, number}, c: c}
	s.send, s.recv = make([]byte, c.Size()*bytes), make([]byte, c.Size()*bytes)
	s.fill(s.send)
	return s
}

func (s *swap) buffers() (send, recv mpi.Buffer) {
	return mpi.Bytes(s.send), mpi.Bytes(s.recv)
}

// waitAndCheck waits for the call and checks the result.
func (s *swap) waitAndCheck(r *mpi.Request) error {
	_, err := r.Wait()
	return errors.Join(err, s.check(s.recv))
}

// TestManyQueuedAlltoalls runs nonblocking and persistent calls on several communicators beside blocking
// calls. Each rank uses the communicators in its own order; the order within a communicator is
// the same at all ranks.
func TestManyQueuedAlltoalls(t *testing.T) {
	const n, rounds = 4, 3
	loss, faults := impaired("loss 1% seed 5")
	for name, open := range map[string]func() (verbs.Device, error){"clean": open, "loss": loss} {
		t.Run(name, func(t *testing.T) {
			jobOn(t, open, n, inTurns, func(w mpi.World) error {
				comms := []*mpi.Comm{w.Comm}
				for i := range 2 {
					c, err := w.Split(0, []int{w.Rank(), -w.Rank()}[i])
					require.NoError(t, err)
					comms = append(comms, c)
				}
				kept, requests := make([]*swap, len(comms)), make([]*mpi.Request, len(comms))
				for i, c := range comms {
					kept[i] = newSwap(c, 700, i)
					var err error
					requests[i], err = c.AlltoallInit(kept[i].buffers())
					require.NoError(t, err)
				}
				rng := rand.New(rand.NewPCG(1, uint64(w.Rank())))
				for round := range rounds {
					allInLine(t, rng, round, comms, kept, requests)
				}
				// Each communicator has a blocking, a nonblocking and a persistent call.
				require.EqualValues(t, 3*len(comms), w.Stats().Queues)
				for i, r := range requests {
					require.NoError(t, r.Free())
					if i > 0 {
						require.NoError(t, comms[i].Free())
					}
				}
				return nil
			})
		})
	}
	require.NotZero(t, faults().Lost)
}

// allInLine makes calls on all communicators and waits for them.
func allInLine(t *testing.T, rng *rand.Rand, round int, comms []*mpi.Comm, kept []*swap, persistent []*mpi.Request) {
	var wait []func() error
	begin := func(c *mpi.Comm, bytes, number int) {
		s := newSwap(c, bytes, number)
		r, err := c.Ialltoall(s.buffers())
		require.NoError(t, err)
		wait = append(wait, func() error { return s.waitAndCheck(r) })
	}
	for _, i := range rng.Perm(len(comms)) {
		for k := range 3 {
			begin(comms[i], 100+5000*((k+round)%2), round+k)
		}
		in := newSwap(comms[i], 300, round) // by another algorithm, between those that wait for their turn
		in.fill(in.recv)
		r, err := comms[i].Ialltoall(mpi.InPlace, mpi.Bytes(in.recv))
		require.NoError(t, err)
		wait = append(wait, func() error { return in.waitAndCheck(r) })
		begin(comms[i], 9000, round+7)
	}
	for _, i := range rng.Perm(len(comms)) {
		kept[i].number += 3
		kept[i].fill(kept[i].send)
		require.NoError(t, persistent[i].Start())
		wait = append(wait, func() error { return kept[i].waitAndCheck(persistent[i]) })
	}
	for _, c := range comms { // blocking calls wait for one another, so that their order is the same at all ranks
		s := newSwap(c, 2000, round)
		require.NoError(t, c.Alltoall(s.buffers()))
		require.NoError(t, s.check(s.recv))
		begin(c, 50, round+9)
	}
	for _, i := range rng.Perm(len(wait)) {
		require.NoError(t, wait[i]())
	}
}

// TestLostRankInQueue checks that a lost rank ends all calls, also those that wait for their turn.
func TestLostRankInQueue(t *testing.T) {
	require.NoError(t, loseLast(4, inTurns, func(w mpi.World) (func(<-chan struct{}) error, error) {
		other, err := w.Dup()
		if err != nil {
			return nil, err
		}
		always := newSwap(w.Comm, 500, 1)
		persistent, err := w.AlltoallInit(always.buffers())
		if err != nil {
			return nil, err
		}
		for _, c := range []*mpi.Comm{w.Comm, other} {
			s := newSwap(c, 500, 0)
			r, err := c.Ialltoall(s.buffers())
			if err == nil {
				err = s.waitAndCheck(r)
			}
			if err != nil {
				return nil, err
			}
		}
		return func(<-chan struct{}) error {
			if err := persistent.Start(); err != nil {
				return err
			}
			rs := []*mpi.Request{persistent}
			for i := range 3 {
				for _, c := range []*mpi.Comm{w.Comm, other} {
					r, err := c.Ialltoall(newSwap(c, 2000, i).buffers())
					if err != nil {
						return err
					}
					rs = append(rs, r)
				}
			}
			for i, r := range rs {
				if _, err := r.Wait(); !errors.Is(err, mpi.ErrLost) {
					return fmt.Errorf("request %d: %w", i, err)
				}
			}
			return nil
		}, nil
	}))
}

// TestReportQueuedAlltoalls checks the report of calls that wait for their turn.
func TestReportQueuedAlltoalls(t *testing.T) {
	o := inTurns
	o.Watchdog = soon
	text := reportOfHang(t, 2, o, func(w mpi.World) error {
		if w.Rank() == 1 {
			_, err := w.Recv(mpi.Bytes([]byte{0}), 0, 6)
			return err
		}
		var err error
		var r *mpi.Request
		for i := 0; err == nil && i < 2; i++ {
			r, err = w.Ialltoall(newSwap(w.Comm, 8, i).buffers())
		}
		if err == nil {
			_, err = r.Wait()
		}
		return err
	})
	require.Regexp(t, `Deadlock: ranks 0 and 1 wait for one another`, text)
	require.Regexp(t, `rank 0: ialltoall #3 of 8 byte .*waits for rank 1 \(after call #2\)`, text)
	require.Regexp(t, `rank 0: in the background ialltoall #2 of 8 byte .*waits for rank 1`, text)
	require.Regexp(t, `rank 1: Recv\(source 0, tag 6\) .*waits for rank 0`, text)
}
