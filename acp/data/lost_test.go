package data_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/acp/data"
	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestHolderDies kills rank 1 while it holds locks at rank 0. Rank 0, which owns the memory, and
// rank 2 get errors that name the holder. Other memory and structures are not affected.
func TestHolderDies(t *testing.T) {
	t.Parallel()
	for name, net := range nets {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			holderDies(t, net)
		})
	}
}

func holderDies(t *testing.T, net acp.Net) {
	const ranks, dead = 3, 1
	var open, asked sync.WaitGroup
	open.Add(ranks)
	asked.Add(ranks)
	ready := make(chan struct{})
	var v *data.Vector[int]
	var m *data.Map[string, int]
	errs := make(chan error, ranks)
	for rank, manager := range pmi.NewLocal(ranks) {
		go func() {
			var dev *rnic.Device
			o := acp.Options{Manager: manager, Net: net, ProbeDelay: 50 * time.Millisecond, CM: cm.Options{Retries: 2},
				RDM: rdm.Options{GiveUp: 500 * time.Millisecond}}
			p, err := acp.Init(func() (_ verbs.Device, err error) {
				dev, err = rnic.Open(rnic.Options{})
				return dev, err
			}, o)
			var s *data.Space
			if err == nil {
				s, err = data.Open(ctx, p, data.Options{Heap: 1 << 13, ProbeDelay: 20 * time.Millisecond})
			}
			open.Done()
			open.Wait()
			switch {
			case err != nil:
			case rank == dead:
				v, m, err = createLocked(s)
				_ = dev.SetImpair("loss 100%") // the disconnect must not arrive
				close(ready)
			default:
				<-ready
				if v != nil && m != nil {
					err = checkErrors(s, v.GA(), m.GA())
				}
			}
			asked.Done()
			asked.Wait()
			if p != nil {
				_ = p.Close()
			}
			errs <- err
		}()
	}
	require.NoError(t, errors.Join(<-errs, <-errs, <-errs))
}

// createLocked creates structures at rank 0, and locks them and the heap.
func createLocked(s *data.Space) (v *data.Vector[int], m *data.Map[string, int], err error) {
	if v, err = data.NewVector[int](ctx, s, 0, 4); err != nil {
		return nil, nil, err
	}
	if m, err = data.NewMap[string, int](ctx, s, 0, data.MapOptions{Ranks: []int{0, 2}, Buckets: 2}); err != nil {
		return nil, nil, err
	}
	if err = m.Set(ctx, "held", 1); err != nil {
		return nil, nil, err
	}
	_, a := s.HoldVector(ctx, v.GA())
	_, b := m.HoldBucket(ctx, "held")
	_, c := s.HoldHeap(ctx, 0)
	return v, m, errors.Join(a, b, c)
}

// checkErrors checks the errors at the other ranks.
func checkErrors(s *data.Space, vector, table acp.GA) error {
	rank := s.Process().Rank()
	m, err := data.OpenMap[string, int](ctx, s, table)
	if err != nil {
		return err
	}
	calls := map[string]func() error{
		"malloc": func() error { _, err := s.Malloc(ctx, 0, 8); return err },
		"open":   func() error { _, err := data.OpenVector[int](ctx, s, vector); return err },
		"find":   func() error { _, _, err := m.Find(ctx, "held"); return err },
	}
	for op, f := range calls {
		err := f()
		var lock *data.LockError
		if !errors.Is(err, data.ErrHolderLost) || !errors.Is(err, acp.ErrLost) || !errors.As(err, &lock) || lock.Holder != 1 {
			return fmt.Errorf("%s at rank %d: %w", op, rank, err)
		}
	}
	if _, err := s.Malloc(ctx, 1, 8); !errors.Is(err, acp.ErrLost) {
		return fmt.Errorf("memory of a dead rank: %w", err)
	}
	for _, k := range []string{"a", "b", "c", "d", "e", "f"} { // in this bucket or in one of the three others
		_, _, err := m.Find(ctx, k)
		if err != nil && !errors.Is(err, data.ErrHolderLost) {
			return fmt.Errorf("another bucket: %w", err)
		}
	}
	at, err := s.Malloc(ctx, 2, 8)
	if err != nil {
		return fmt.Errorf("memory of a live rank: %w", err)
	}
	return s.Free(ctx, at)
}

// TestHeld checks the wait for a lock that a live holder does not release: until the context ends,
// or with ErrHeld.
func TestHeld(t *testing.T) {
	t.Parallel()
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		s, err := data.Open(ctx, p, data.Options{Heap: 1 << 13, ProbeDelay: 10 * time.Millisecond})
		require.NoError(t, err)
		if p.Rank() == 1 {
			release, err := s.HoldHeap(ctx, 0)
			require.NoError(t, err)
			require.NoError(t, errors.Join(p.Sync(ctx), p.Sync(ctx), release(), p.Sync(ctx)))
			return s.Close(ctx)
		}
		require.NoError(t, p.Sync(ctx))
		stop := errors.New("that is long enough")
		brief, cancel := context.WithCancelCause(ctx)
		cancel(stop)
		_, err = s.Malloc(brief, 0, 8)
		require.ErrorIs(t, err, stop)
		require.ErrorContains(t, err, "wait for rank 1")
		_, err = s.Malloc(ctx, 0, 8)
		require.ErrorIs(t, err, data.ErrHeld)
		require.ErrorContains(t, err, ": held by rank 1 for at least")
		require.NotErrorIs(t, err, data.ErrHolderLost)
		require.NoError(t, errors.Join(p.Sync(ctx), p.Sync(ctx)))
		at, err := s.Malloc(ctx, 0, 8)
		require.NoError(t, err)
		require.NoError(t, s.Free(ctx, at))
		return s.Close(ctx)
	}))
}

// TestPanic checks that a function that panics in Map.Update leaves the map unchanged and unlocked.
func TestPanic(t *testing.T) {
	world(t, 2, newOptions(acp.RC), 1<<13, func(w []*data.Space) {
		m, err := data.NewMap[string, int](ctx, w[0], 1, data.MapOptions{})
		require.NoError(t, err)
		require.NoError(t, m.Set(ctx, "k", 7))
		require.PanicsWithValue(t, "no", func() { _ = m.Update(ctx, "k", func(int, bool) int { panic("no") }) })
		other, err := data.OpenMap[string, int](ctx, w[1], m.GA())
		require.NoError(t, err)
		v, found, err := other.Find(ctx, "k")
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, 7, v)
	})
}
