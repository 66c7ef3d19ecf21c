package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// quick is the time within which a rank must be through: less than the 7.5 s after which
// a fabric gives up a silent rank, and than the 10 s that a rank waits at the last fence.
// On a bad network the last packet of a rank that has gone may be lost, which costs both.
var quick = func() time.Duration {
	if os.Getenv("SOFTRNIC_IMPAIR") != "" {
		return 20 * time.Second
	}
	return 5 * time.Second
}()

// finalizeFabrics are the ways that ranks exchange messages.
var finalizeFabrics = map[string]mpi.Options{
	"memory in common": {}, "rdma": {NoShared: true}, "ud": {NoShared: true, Net: mpi.UD}, "tcp": {NoShared: true, Net: mpi.TCP},
	"hybrid": {NoShared: true, Net: mpi.Hybrid, RCLimit: 1},
}

// outcome is what a rank has to say: the errors of its calls and of Finalize, and how long
// it took.
type outcome struct {
	call, finalize error
	took           time.Duration
}

// runToFinalize runs f at n ranks, and then Finalize whatever f returns.
func runToFinalize(t *testing.T, n int, o mpi.Options, f func(w *mpi.World) error) []outcome {
	t.Helper()
	ends := make([]outcome, n)
	var all sync.WaitGroup
	for i, m := range pmi.NewLocal(n) {
		all.Go(func() {
			o := o
			o.Manager = m
			e := &ends[i]
			w, err := mpi.Init(open, o)
			if e.call = err; err != nil {
				return
			}
			began := time.Now()
			e.call = f(w)
			e.finalize = w.Finalize()
			e.took = time.Since(began)
		})
	}
	all.Wait()
	return ends
}

// Ranks whose calls do not agree, and that go on to Finalize: each has an ErrMismatch, of
// the call or of Finalize, and none waits for another that has gone.
func TestFinalizeTellsDisagreement(t *testing.T) {
	one := func() mpi.Buffer { return mpi.Of([]float64{1}) }
	for _, c := range []struct {
		name   string
		inStep bool // all ranks make their last barrier together
		call   func(w *mpi.World, odd bool) error
	}{
		{"all send", true, func(w *mpi.World, odd bool) error { return w.Bcast(one(), w.Rank()) }},
		{"another root", true, func(w *mpi.World, odd bool) error {
			if odd || w.Rank() == 1 {
				return w.Bcast(one(), w.Rank())
			}
			return w.Bcast(one(), 1)
		}},
		{"all send and free", true, func(w *mpi.World, odd bool) error {
			c, err := w.Dup()
			if err != nil {
				return err
			}
			return errors.Join(c.Bcast(one(), w.Rank()), c.Free())
		}},
		{"another call", true, func(w *mpi.World, odd bool) error {
			if odd {
				return made(w.Split(0, 0))
			}
			return w.Barrier()
		}},
		{"one call less", false, func(w *mpi.World, odd bool) error {
			if odd {
				return nil
			}
			return w.Barrier()
		}},
		{"one call more", false, func(w *mpi.World, odd bool) error {
			if odd {
				return w.Bcast(one(), w.Rank())
			}
			return nil
		}},
	} {
		for fabric, o := range finalizeFabrics {
			for _, n := range []int{2, 3, 5} {
				if n == 3 && testing.Short() {
					continue
				}
				for _, odd := range []int{0, n - 1} {
					for _, before := range []int{0, mpi.BoardAfter} { // calls that are well
						if before > 0 && o.NoShared || c.name == "another root" && odd == 1 {
							continue
						}
						name := fmt.Sprintf("%s, %s, %d ranks, odd %d, after %d", c.name, fabric, n, odd, before)
						ends := runToFinalize(t, n, o, func(w *mpi.World) error {
							for range before {
								if err := w.Barrier(); err != nil {
									return err
								}
							}
							return c.call(w, w.Rank() == odd)
						})
						for rank, e := range ends {
							require.ErrorIs(t, errors.Join(e.call, e.finalize), mpi.ErrMismatch, "%s: rank %d", name, rank)
							require.Less(t, e.took, quick, "%s: rank %d: %v, %v", name, rank, e.call, e.finalize)
							if c.inStep {
								require.NotErrorIs(t, e.finalize, mpi.ErrLost, "%s: rank %d", name, rank)
							} else if e.finalize != nil {
								require.ErrorIs(t, e.finalize, mpi.ErrMismatch, "%s: rank %d", name, rank)
							}
						}
					}
				}
			}
		}
	}
}

// A rank that hears in Finalize, or before, that an earlier call was wrong comes to the last
// fence: the other one, which knows already, does not wait for it.
func TestLateDisagreementKeepsFence(t *testing.T) {
	for fabric, o := range finalizeFabrics {
		t.Run(fabric, func(t *testing.T) {
			var sent atomic.Bool // by rank 0, whose call is over
			ends := runToFinalize(t, 2, o, func(w *mpi.World) error {
				for w.Rank() == 1 && (w.Unexpected() == 0 || !sent.Load()) {
					time.Sleep(time.Millisecond)
				}
				err := w.Bcast(mpi.Of([]float64{1}), w.Rank())
				sent.Store(true)
				return err
			})
			require.NoError(t, ends[0].call)
			require.ErrorIs(t, ends[0].finalize, mpi.ErrMismatch)
			require.ErrorIs(t, ends[1].call, mpi.ErrMismatch)
			require.NoError(t, ends[1].finalize)
			for _, e := range ends {
				require.Less(t, e.took, quick)
			}
		})
	}
}

// departingManager is a process manager of a rank that leaves the job instead of coming to its second
// fence.
type departingManager struct {
	pmi.Manager
	fences int
	leave  func()
}

func (m *departingManager) Fence(ctx context.Context) error {
	if m.fences++; m.fences > 1 {
		m.leave()
		return errors.New("left")
	}
	return m.Manager.Fence(ctx)
}

// A rank that does not come to the last fence, and says so, does not keep the others until
// they give it up.
func TestDepartEarlyBreaksFence(t *testing.T) {
	for fabric, o := range finalizeFabrics {
		t.Run(fabric, func(t *testing.T) {
			var all sync.WaitGroup
			for i, m := range pmi.NewLocal(2) {
				all.Go(func() {
					o := o
					o.Manager = m
					l := &departingManager{Manager: m}
					if i == 1 {
						o.Manager = l
					}
					w, err := mpi.Init(open, o)
					if err != nil {
						t.Error(err)
						return
					}
					l.leave = func() { w.DepartEarly(errors.New("no more of it")) }
					began := time.Now()
					if err = w.Finalize(); i == 1 {
						return
					}
					if took := time.Since(began); took > quick || !errors.Is(err, mpi.ErrLost) {
						t.Errorf("after %v: %v", took, err)
					}
				})
			}
			all.Wait()
		})
	}
}

// A rank whose Init fails behind the first fence leaves no other waiting.
func TestConnectAllFails(t *testing.T) {
	for fabric, o := range finalizeFabrics {
		t.Run(fabric, func(t *testing.T) {
			var all sync.WaitGroup
			for i, m := range pmi.NewLocal(2) {
				all.Go(func() {
					o := o
					o.Manager, o.ConnectAll = m, i == 0
					began := time.Now()
					w, err := mpi.Init(open, o)
					if err == nil {
						err = errors.Join(w.Bcast(mpi.Of([]float64{1}), 1), w.Finalize())
					}
					if took := time.Since(began); took > quick || !errors.Is(err, mpi.ErrMismatch) {
						t.Errorf("rank %d after %v: %v", i, took, err)
					}
				})
			}
			all.Wait()
		})
	}
}

// What comes for the rank before its first calls is handled, not dropped: a rank that has
// none ends as soon as the others do.
func TestFinalizeAtOnce(t *testing.T) {
	for fabric, o := range finalizeFabrics {
		t.Run(fabric, func(t *testing.T) {
			for _, e := range runToFinalize(t, 5, o, func(*mpi.World) error { return nil }) {
				require.NoError(t, errors.Join(e.call, e.finalize))
			}
		})
	}
}
