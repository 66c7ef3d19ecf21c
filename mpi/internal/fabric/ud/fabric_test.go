package ud_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/rnic"
)

// TestLostLastDatagram drops the only datagram of a message, while both ranks wait for one of the other. In
// the second job one rank makes no further MPI calls.
func TestLostLastDatagram(t *testing.T) {
	first := func(rank int) string { return []string{"drop first UD", ""}[rank] }
	job(t, 2, first, mpi.Options{}, func(w mpi.World, _ *rnic.Device) error {
		x := []int32{int32(w.Rank())}
		got := []int32{-1}
		if w.Rank() == 0 {
			require.NoError(t, w.Send(mpi.Of(x), 1, 1))
		}
		_, err := w.Recv(mpi.Of(got), 1-w.Rank(), 1)
		require.NoError(t, err)
		if w.Rank() == 1 {
			require.NoError(t, w.Send(mpi.Of(x), 0, 1))
			require.EqualValues(t, 0, got[0])
			return nil
		}
		require.NotZero(t, w.Stats().Probes)
		require.NotZero(t, w.Stats().Retransmitted)
		require.EqualValues(t, 1, got[0])
		return nil
	})

	there := make(chan struct{})
	job(t, 2, first, mpi.Options{}, func(w mpi.World, _ *rnic.Device) error {
		if w.Rank() == 0 {
			err := w.Send(mpi.Of([]int32{7}), 1, 1)
			<-there // without an MPI call
			return err
		}
		defer close(there)
		_, err := w.Recv(mpi.Of([]int32{0}), 0, 1)
		return err
	})
}

// TestMoreThanReceives has many ranks send more to one rank than it has receives for, while it
// makes no calls, and checks that all messages arrive in order.
func TestMoreThanReceives(t *testing.T) {
	const n, each, most = 4, 100, 3000
	var resent atomic.Uint64
	job(t, n, nothing, mpi.Options{UD: mpi.UDOptions{Receives: 16, Packets: 100}}, func(w mpi.World, dev *rnic.Device) error {
		require.NoError(t, w.Barrier()) // so that all ranks are connected
		if w.Rank() > 0 {
			rs := make([]*mpi.Request, each)
			for i := range rs {
				x := make([]int32, 1+i*37%most)
				x[0] = int32(i)
				var err error
				rs[i], err = w.Isend(mpi.Of(x), 0, 7)
				require.NoError(t, err)
			}
			_, err := mpi.WaitAll(rs...)
			require.NoError(t, err)
		} else {
			for dropped(dev, "no_receive") == 0 { // which takes a short time only
				runtime.Gosched()
			}
			next := make([]int32, n)
			x := make([]int32, most)
			for range (n - 1) * each {
				s, err := w.Recv(mpi.Of(x), mpi.AnySource, 7)
				require.NoError(t, err)
				require.Equal(t, next[s.Source], x[0])
				require.Equal(t, 4*(1+int(x[0])*37%most), s.Bytes)
				next[s.Source]++
			}
		}
		err := w.Barrier()
		resent.Add(w.Stats().Retransmitted)
		return err
	})
	require.NotZero(t, resent.Load())
}

func dropped(dev *rnic.Device, why string) uint64 {
	for _, d := range dev.Inspect().Drops {
		if d.Reason == why {
			return d.Packets
		}
	}
	panic("the adapter has no such reason: " + why)
}

// TestLostRank checks that a failed rank is lost to a rank that has sent it a message, and
// not to others.
func TestLostRank(t *testing.T) {
	met, gone, over := make(chan struct{}, 3), make(chan struct{}), make(chan struct{})
	job(t, 3, nothing, mpi.Options{UD: mpi.UDOptions{GiveUp: 2 * time.Second}}, func(w mpi.World, dev *rnic.Device) error {
		require.NoError(t, w.Barrier())
		met <- struct{}{}
		switch w.Rank() {
		case 2:
			for range 3 {
				<-met // the barrier has returned at all ranks
			}
			require.NoError(t, dev.SetImpair("loss 100%"))
			close(gone)
		case 1:
			<-gone
			_, err := w.Recv(mpi.Of([]int32{1}), 0, 1)
			require.NoError(t, err)
			close(over)
		case 0:
			<-gone
			require.NoError(t, w.Send(mpi.Of([]int32{1}), 2, 1)) // the send is complete when the packet has left
			_, err := w.Recv(mpi.Of([]int32{1}), 2, 1)
			require.ErrorIs(t, err, mpi.ErrLost)
			require.ErrorContains(t, err, "no reply for ")
			require.ErrorIs(t, w.Send(mpi.Of([]int32{1}), 2, 1), mpi.ErrLost)
			require.NoError(t, w.Send(mpi.Of([]int32{1}), 1, 1))
		}
		<-over
		return errLeave
	})
}
