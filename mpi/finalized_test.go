package mpi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// TestFinalized checks that calls in progress at Finalize, and later ones, return ErrFinalized
// without a failed rank.
func TestFinalized(t *testing.T) {
	for name, o := range map[string]mpi.Options{"rdma": {}, "ud": {Net: mpi.UD}, "tcp": {Net: mpi.TCP}, "hybrid": {Net: mpi.Hybrid, RCLimit: 1}, "checked": checked} {
		t.Run(name, func(t *testing.T) {
			err := pmi.RunLocal(3, grace, func(m pmi.Manager) error {
				o := o
				o.Manager = m
				w, err := mpi.Init(open, o)
				if err != nil {
					return err
				}
				finalized(t, w)
				return nil
			})
			require.NoError(t, err)
		})
	}
}

// stoppedAtEnd is the process manager of a rank that does not enter its second fence.
type stoppedAtEnd struct {
	pmi.Manager
	fences int
	over   <-chan struct{}
}

func (m *stoppedAtEnd) Fence(ctx context.Context) error {
	if m.fences++; m.fences > 1 {
		<-m.over
		return errors.New("stopped")
	}
	return m.Manager.Fence(ctx)
}

// TestStoppedInFinalize checks that a rank that stops between the last barrier and the last fence does
// not delay the others.
func TestStoppedInFinalize(t *testing.T) {
	over := make(chan struct{})
	_ = pmi.RunLocal(2, grace, func(m pmi.Manager) error {
		o := mpi.Options{GiveUp: time.Second, Manager: m}
		if m.Rank() == 1 {
			o.Manager = &stoppedAtEnd{Manager: m, over: over}
		}
		w, err := mpi.Init(open, o)
		if err != nil {
			return err
		}
		began := time.Now()
		err = w.Finalize()
		if w.Rank() == 0 {
			assert.ErrorIs(t, err, mpi.ErrLost)
			assert.Less(t, time.Since(began), 10*time.Second)
			close(over)
		}
		return err
	})
}

// TestFinalizedAlone is TestFinalized in a job of one rank.
func TestFinalizedAlone(t *testing.T) {
	w, err := initAlone(mpi.Options{})
	require.NoError(t, err)
	finalized(t, w)
}

func finalized(t *testing.T, w mpi.World) {
	b, long := func() mpi.Buffer { return mpi.Of(make([]int64, 1)) }, func() mpi.Buffer { return mpi.Of(make([]int64, 1<<16)) }
	next := (w.Rank() + 1) % w.Size()
	dup, err := w.Dup()
	require.NoError(t, err)
	win, _, err := mpi.WinAllocate[int64](w.Comm, 1)
	require.NoError(t, err)
	all := make([]mpi.Buffer, w.Size())
	for i := range all {
		all[i] = b()
	}
	begin := func(r *mpi.Request, err error) *mpi.Request {
		require.NoError(t, err)
		return r
	}
	kept := begin(w.RecvInit(b(), next, 9))
	active := begin(w.RecvInit(b(), next, 10))
	require.NoError(t, active.Start())
	barrier := begin(w.BarrierInit())
	background := begin(dup.Irecv(b(), mpi.AnySource, 2))
	under := map[string]*mpi.Request{
		"receive": begin(w.Irecv(b(), next, 1)), "persistent": active,
		"synchronous": begin(w.Issend(b(), next, 3)), "long": begin(dup.Isend(long(), next, 4)), "in another communicator": background,
	}
	waits := make(chan error, 2)
	go func() {
		_, err := w.Recv(b(), next, 5)
		waits <- err
	}()
	go func() {
		_, err := w.Probe(next, 6)
		waits <- err
	}()
	require.NoError(t, w.Finalize())
	for range 2 {
		require.ErrorIs(t, <-waits, mpi.ErrFinalized)
	}
	for name, r := range under {
		_, err := r.Wait()
		require.ErrorIs(t, err, mpi.ErrFinalized, name)
		require.NotErrorIs(t, err, mpi.ErrLost, name)
	}
	for i, call := range []func() error{
		func() error { return w.Send(b(), next, 1) },
		func() error { return w.Ssend(b(), next, 1) },
		func() error { return made(w.Isend(b(), next, 1)) },
		func() error { return made(w.Recv(b(), next, 1)) },
		func() error { return made(w.Irecv(b(), mpi.AnySource, 1)) },
		func() error { return made(w.Sendrecv(b(), next, 1, b(), next, 1)) },
		func() error { return made(w.Probe(next, 1)) },
		func() error { _, _, err := w.Iprobe(next, 1); return err },
		func() error { _, _, err := w.Mprobe(next, 1); return err },
		func() error { _, _, _, err := w.Improbe(next, 1); return err },
		kept.Start,
		func() error { return wait(barrier, barrier.Start()) },
		w.Barrier, dup.Barrier, w.Self.Barrier,
		func() error { return wait(w.Ibarrier()) },
		func() error { return made(w.BarrierInit()) },
		func() error { return w.Bcast(b(), 0) },
		func() error { return w.Allreduce(b(), b(), mpi.Sum) },
		func() error { return w.Alltoallw(all, all) },
		func() error { return made(w.Dup()) },
		func() error { return made(w.Split(0, 0)) },
		func() error { return made(w.SplitShared()) },
		func() error { return made(w.Create(w.Group())) },
		func() error { return made(w.CreateGroup(w.Group(), 0)) },
		func() error { return made(w.CartCreate([]int{1}, []bool{false}, false)) },
		func() error { _, _, err := mpi.WinAllocate[int64](w.Comm, 1); return err },
		func() error { return win.Put(b(), next, mpi.At(0)) },
		func() error { return win.Fence() },
		func() error { return win.Lock(mpi.LockShared, next) },
		win.Free,
		w.Finalize,
	} {
		require.ErrorIs(t, call(), mpi.ErrFinalized, "call %d", i)
	}
}

// TestFinalizeContext checks that a rank leaves the job when the context ends, although another
// rank does not call Finalize.
func TestFinalizeContext(t *testing.T) {
	for name, o := range map[string]mpi.Options{"messages": {NoShared: true}, "shared memory": {}} {
		t.Run(name, func(t *testing.T) {
			managers := pmi.NewLocal(2)
			worlds := make(chan mpi.World, 2)
			for i := range 2 {
				go func() {
					o := o
					o.Manager = managers[i]
					w, err := mpi.Init(open, o)
					assert.NoError(t, err)
					for range 2 * mpi.BoardAfter {
						assert.NoError(t, w.Barrier())
					}
					worlds <- w
				}()
			}
			a, b := <-worlds, <-worlds
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, a.FinalizeContext(ctx), context.DeadlineExceeded)
			require.ErrorIs(t, a.Barrier(), mpi.ErrFinalized)
			b.Vanish()
		})
	}
}
