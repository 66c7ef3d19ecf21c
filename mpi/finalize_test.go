package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// rankTimeout bounds the time of a rank. It is less than the 7.5 s after which a fabric reports a silent
// rank as lost, and than the 10 s that a rank waits at the last fence. On a lossy network the last
// packet of a rank that has exited may be lost, which costs both.
var rankTimeout = func() time.Duration {
	if os.Getenv("SOFTRNIC_IMPAIR") != "" {
		return 20 * time.Second
	}
	return 5 * time.Second
}()

// finalizeFabrics are options for each transport of messages.
var finalizeFabrics = map[string]mpi.Options{
	"shared memory": {}, "rdma": {NoShared: true}, "ud": {NoShared: true, Net: mpi.UD}, "tcp": {NoShared: true, Net: mpi.TCP},
	"hybrid": {NoShared: true, Net: mpi.Hybrid, RCLimit: 1},
}

// outcome holds the errors of a rank's calls and of Finalize, and the time of both.
type outcome struct {
	call, finalize error
	took           time.Duration
}

// runToFinalize runs f on n ranks, and then Finalize, also if f fails.
func runToFinalize(t *testing.T, n int, o mpi.Options, f func(w mpi.World) error) []outcome {
	t.Helper()
	ends := make([]outcome, n)
	eachRank(n, o, func(i int, o mpi.Options) {
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
	return ends
}

// TestFinalizeMismatch has ranks call Finalize after mismatched calls: each gets an
// ErrMismatch, from the call or from Finalize, and none waits for a rank that has exited.
func TestFinalizeMismatch(t *testing.T) {
	one := func() mpi.Buffer { return mpi.Of([]float64{1}) }
	for _, c := range []struct {
		name   string
		inStep bool // all ranks make their last barrier together
		call   func(w mpi.World, odd bool) error
	}{
		{"all send", true, func(w mpi.World, odd bool) error { return w.Bcast(one(), w.Rank()) }},
		{"another root", true, func(w mpi.World, odd bool) error {
			if odd || w.Rank() == 1 {
				return w.Bcast(one(), w.Rank())
			}
			return w.Bcast(one(), 1)
		}},
		{"all send and free", true, func(w mpi.World, odd bool) error {
			c, err := w.Dup()
			if err != nil {
				return err
			}
			return errors.Join(c.Bcast(one(), w.Rank()), c.Free())
		}},
		{"another call", true, func(w mpi.World, odd bool) error {
			if odd {
				return made(w.Split(0, 0))
			}
			return w.Barrier()
		}},
		{"one call less", false, func(w mpi.World, odd bool) error {
			if odd {
				return nil
			}
			return w.Barrier()
		}},
		{"one call more", false, func(w mpi.World, odd bool) error {
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
					for _, before := range []int{0, mpi.BoardAfter} { // correct calls
						if before > 0 && o.NoShared || c.name == "another root" && odd == 1 {
							continue
						}
						name := fmt.Sprintf("%s, %s, %d ranks, odd %d, after %d", c.name, fabric, n, odd, before)
						ends := runToFinalize(t, n, o, func(w mpi.World) error {
							for range before {
								if err := w.Barrier(); err != nil {
									return err
								}
							}
							return c.call(w, w.Rank() == odd)
						})
						for rank, e := range ends {
							require.ErrorIs(t, errors.Join(e.call, e.finalize), mpi.ErrMismatch, "%s: rank %d", name, rank)
							require.Less(t, e.took, rankTimeout, "%s: rank %d: %v, %v", name, rank, e.call, e.finalize)
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

// TestLateMismatchKeepsFence checks that a rank that is notified of a mismatch of an earlier
// call before or in Finalize still enters the last fence: the other rank, whose call has failed,
// does not wait for it.
func TestLateMismatchKeepsFence(t *testing.T) {
	for fabric, o := range finalizeFabrics {
		t.Run(fabric, func(t *testing.T) {
			sent := make(chan struct{}) // closed by rank 0 when its call has returned
			ends := runToFinalize(t, 2, o, func(w mpi.World) error {
				if w.Rank() == 0 {
					defer close(sent)
					return w.Bcast(mpi.Of([]float64{1}), 0)
				}
				<-sent
				for w.Unexpected() == 0 { // polls the network
					runtime.Gosched()
				}
				return w.Bcast(mpi.Of([]float64{1}), 1)
			})
			require.NoError(t, ends[0].call)
			require.ErrorIs(t, ends[0].finalize, mpi.ErrMismatch)
			require.ErrorIs(t, ends[1].call, mpi.ErrMismatch)
			require.NoError(t, ends[1].finalize)
			for _, e := range ends {
				require.Less(t, e.took, rankTimeout)
			}
		})
	}
}

// departingManager is the process manager of a rank that leaves the job instead of entering its
// second fence.
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

// TestDepartEarlyBreaksFence checks that a rank that announces that it will not enter the last
// fence ends the wait of the others there at once.
func TestDepartEarlyBreaksFence(t *testing.T) {
	for fabric, o := range finalizeFabrics {
		t.Run(fabric, func(t *testing.T) {
			eachRank(2, o, func(i int, o mpi.Options) {
				l := &departingManager{Manager: o.Manager}
				if i == 1 {
					o.Manager = l
				}
				w, err := mpi.Init(open, o)
				if err != nil {
					t.Error(err)
					return
				}
				l.leave = func() { w.DepartEarly(errors.New("departure")) }
				began := time.Now()
				if err = w.Finalize(); i == 1 {
					return
				}
				if took := time.Since(began); took > rankTimeout || !errors.Is(err, mpi.ErrLost) {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

// TestConnectAllFails checks that a rank whose Init fails after the first fence leaves no other
// rank waiting.
func TestConnectAllFails(t *testing.T) {
	for fabric, o := range finalizeFabrics {
		t.Run(fabric, func(t *testing.T) {
			eachRank(2, o, func(i int, o mpi.Options) {
				o.ConnectAll = i == 0
				began := time.Now()
				w, err := mpi.Init(open, o)
				if err == nil {
					err = errors.Join(w.Bcast(mpi.Of([]float64{1}), 1), w.Finalize())
				}
				if took := time.Since(began); took > rankTimeout || !errors.Is(err, mpi.ErrMismatch) {
					t.Errorf("rank %d after %v: %v", i, took, err)
				}
			})
		})
	}
}

// TestFinalizeWithoutCalls checks that packets that arrive before the first call of a rank are handled: a
// rank without calls finalizes as soon as the others do.
func TestFinalizeWithoutCalls(t *testing.T) {
	for fabric, o := range finalizeFabrics {
		t.Run(fabric, func(t *testing.T) {
			for _, e := range runToFinalize(t, 5, o, func(mpi.World) error { return nil }) {
				require.NoError(t, errors.Join(e.call, e.finalize))
			}
		})
	}
}
