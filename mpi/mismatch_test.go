package mpi_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// variant is a set of arguments that may differ between ranks.
type variant struct {
	root, n int
	ints    bool // instead of float64, of the same size
	op      mpi.Op
}

// buffer returns a buffer of n elements, times the variant's factor.
func (v variant) buffer(times int) mpi.Buffer {
	if v.ints {
		return mpi.Of(make([]int64, times*v.n))
	}
	return mpi.Of(make([]float64, times*v.n))
}

// counts returns n for each rank.
func (v variant) counts(size int) (list []int) {
	for range size {
		list = append(list, v.n)
	}
	return list
}

// variedCall is a collective call that depends on a variant.
type variedCall struct {
	name             string
	rooted, data, op bool
	do               func(c *mpi.Comm, v variant) error
}

func variedCalls() []variedCall {
	block := func(v variant, c *mpi.Comm) ([]int, int) { return v.counts(c.Size()), c.Size() }
	return []variedCall{
		{"barrier", false, false, false, func(c *mpi.Comm, v variant) error { return c.Barrier() }},
		{"bcast", true, true, false, func(c *mpi.Comm, v variant) error { return c.Bcast(v.buffer(1), v.root) }},
		{"gather", true, true, false, func(c *mpi.Comm, v variant) error {
			return c.Gather(v.buffer(1), v.buffer(c.Size()), v.root)
		}},
		{"gatherv", true, true, false, func(c *mpi.Comm, v variant) error {
			counts, n := block(v, c)
			return c.Gatherv(v.buffer(1), v.buffer(n), counts, nil, v.root)
		}},
		{"scatter", true, true, false, func(c *mpi.Comm, v variant) error {
			return c.Scatter(v.buffer(c.Size()), v.buffer(1), v.root)
		}},
		{"scatterv", true, true, false, func(c *mpi.Comm, v variant) error {
			counts, n := block(v, c)
			return c.Scatterv(v.buffer(n), counts, nil, v.buffer(1), v.root)
		}},
		{"allgather", false, true, false, func(c *mpi.Comm, v variant) error {
			return c.Allgather(v.buffer(1), v.buffer(c.Size()))
		}},
		{"allgatherv", false, true, false, func(c *mpi.Comm, v variant) error {
			counts, n := block(v, c)
			return c.Allgatherv(v.buffer(1), v.buffer(n), counts, nil)
		}},
		{"alltoall", false, true, false, func(c *mpi.Comm, v variant) error {
			return c.Alltoall(v.buffer(c.Size()), v.buffer(c.Size()))
		}},
		{"alltoallv", false, true, false, func(c *mpi.Comm, v variant) error {
			counts, n := block(v, c)
			return c.Alltoallv(v.buffer(n), counts, nil, v.buffer(n), counts, nil)
		}},
		{"alltoallw", false, true, false, func(c *mpi.Comm, v variant) error {
			send, recv := make([]mpi.Buffer, c.Size()), make([]mpi.Buffer, c.Size())
			for i := range send {
				send[i], recv[i] = v.buffer(1), v.buffer(1)
			}
			return c.Alltoallw(send, recv)
		}},
		{"reduce", true, true, true, func(c *mpi.Comm, v variant) error {
			return c.Reduce(v.buffer(1), v.buffer(1), v.op, v.root)
		}},
		{"allreduce", false, true, true, func(c *mpi.Comm, v variant) error {
			return c.Allreduce(v.buffer(1), v.buffer(1), v.op)
		}},
		{"reduce-scatter", false, true, true, func(c *mpi.Comm, v variant) error {
			counts, n := block(v, c)
			return c.ReduceScatter(v.buffer(n), v.buffer(1), counts, v.op)
		}},
		{"reduce-scatter-block", false, true, true, func(c *mpi.Comm, v variant) error {
			return c.ReduceScatterBlock(v.buffer(c.Size()), v.buffer(1), v.op)
		}},
		{"scan", false, true, true, func(c *mpi.Comm, v variant) error { return c.Scan(v.buffer(1), v.buffer(1), v.op) }},
		{"exscan", false, true, true, func(c *mpi.Comm, v variant) error { return c.Exscan(v.buffer(1), v.buffer(1), v.op) }},
		{"ibcast", true, true, false, func(c *mpi.Comm, v variant) error { return wait(c.Ibcast(v.buffer(1), v.root)) }},
		{"iallreduce", false, true, true, func(c *mpi.Comm, v variant) error {
			return wait(c.Iallreduce(v.buffer(1), v.buffer(1), v.op))
		}},
		{"persistent allreduce", false, true, true, func(c *mpi.Comm, v variant) error {
			r, err := c.AllreduceInit(v.buffer(1), v.buffer(1), v.op)
			if err == nil {
				err = r.Start()
			}
			return wait(r, err)
		}},
	}
}

// wrongCall is a call of the odd rank that differs from the others.
type wrongCall struct {
	name string
	want []string // possible parts of the error
	do   func(c *mpi.Comm, odd bool) error
}

// wrongCalls are all calls, with everything in which ranks can differ.
func wrongCalls(n int) (list []wrongCall) {
	good := variant{root: 0, n: n, op: mpi.Sum}
	for _, call := range variedCalls() {
		add := func(what string, bad variant, want ...string) {
			list = append(list, wrongCall{call.name + " " + what, want, func(c *mpi.Comm, odd bool) error {
				if odd {
					return call.do(c, bad)
				}
				return call.do(c, good)
			}})
		}
		if call.rooted {
			bad := good
			bad.root = 2
			add("root", bad, "root 2")
		}
		if call.data {
			bad := good
			bad.ints = true
			add("kind", bad, "int64 elements")
			bad = good
			bad.n++
			add("count", bad, fmt.Sprintf("count %d", bad.n), "counts", fmt.Sprintf("expects %d", 8*bad.n), fmt.Sprintf("sends %d bytes", 8*bad.n), fmt.Sprintf("count %d", 3*bad.n))
			bad.n = 0
			add("nothing", bad, "count 0", "counts", "nothing", "none")
		}
		if call.op {
			bad := good
			bad.op = mpi.Max
			add("operation", bad, "operation max")
		}
		list = append(list, wrongCall{call.name + " call", []string{"calls " + call.name, "split", call.name + " with"}, func(c *mpi.Comm, odd bool) error {
			if odd {
				return made(c.Split(0, 0))
			}
			return call.do(c, good)
		}})
	}
	pair := func(name string, one, other func(c *mpi.Comm) error, want ...string) {
		list = append(list, wrongCall{name, want, func(c *mpi.Comm, odd bool) error {
			if odd {
				return one(c)
			}
			return other(c)
		}})
	}
	dup := func(c *mpi.Comm) error { return made(c.Dup()) }
	grid := func(dims ...int) func(c *mpi.Comm) error {
		return func(c *mpi.Comm) error { return made(c.CartCreate(dims, make([]bool, len(dims)), false)) }
	}
	pair("dup and split", dup, func(c *mpi.Comm) error { return made(c.Split(0, 0)) }, "dup")
	pair("dup and split-shared", dup, func(c *mpi.Comm) error { return made(c.SplitShared()) }, "split-shared")
	pair("dup and create", dup, func(c *mpi.Comm) error { return made(c.Create(c.Group())) }, "create")
	pair("grids", grid(3, 1), grid(1, 3), "cart-create")
	pair("window and barrier", func(c *mpi.Comm) error {
		_, _, err := mpi.WinAllocate[int64](c, 1)
		return err
	}, (*mpi.Comm).Barrier, "win-create")
	pair("barrier and ibarrier", func(c *mpi.Comm) error { return wait(c.Ibarrier()) }, (*mpi.Comm).Barrier, "ibarrier")
	// Each rank waits for a message of another, and none is sent.
	gather := variant{root: 1, n: n}
	pair("roots that wait", func(c *mpi.Comm) error { return c.Gather(gather.buffer(1), gather.buffer(c.Size()), 1) },
		func(c *mpi.Comm) error { return c.Bcast(gather.buffer(1), 1) }, "gather")
	return list
}

// TestCollectiveMismatches checks that for every mismatch of a collective call no rank succeeds
// silently or waits for ever: each gets an error in that call or a later one, and the calls
// after it succeed.
func TestCollectiveMismatches(t *testing.T) {
	for _, way := range []struct {
		name string
		o    mpi.Options
	}{
		{"shared memory", mpi.Options{}},
		{"rdma", mpi.Options{NoShared: true}},
		{"ud", mpi.Options{NoShared: true, Net: mpi.UD}},
		{"tcp", mpi.Options{NoShared: true, Net: mpi.TCP}},
	} {
		for size, n := range map[string]int{"short": 4, "long": 40_000} {
			if way.name != "shared memory" && way.name != "rdma" && (size == "long" || testing.Short()) {
				continue
			}
			t.Run(way.name+" "+size, func(t *testing.T) {
				if way.o.NoShared == false {
					needBoards(t)
				}
				runMismatches(t, way.o, wrongCalls(n))
			})
		}
	}
}

// runMismatches makes all wrong calls concurrently, each on a communicator of its own.
func runMismatches(t *testing.T, o mpi.Options, calls []wrongCall) {
	const ranks, odd = 3, 1
	var mu sync.Mutex
	errs := make([][ranks]error, len(calls))
	job(t, ranks, o, func(w mpi.World) error {
		var all sync.WaitGroup
		for i, call := range calls {
			c, err := w.Dup()
			require.NoError(t, err)
			if !o.NoShared && i%2 == 0 { // the others make the first of their calls
				require.NoError(t, createSharedMemory(c))
			}
			all.Go(func() {
				err := call.do(c, w.Rank() == odd)
				for limit := time.Now().Add(10 * time.Second); !errors.Is(err, mpi.ErrMismatch) && time.Now().Before(limit); {
					if err = mpi.Late(c); err == nil {
						time.Sleep(time.Millisecond)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				errs[i][w.Rank()] = err
				// All ranks make the same calls again.
				mu.Unlock()
				after := sumOfRanks(c, mpi.Sum)
				mu.Lock()
				if after != nil {
					errs[i][w.Rank()] = fmt.Errorf("the next call: %w", after)
				}
			})
		}
		all.Wait()
		return nil
	})
	for i, call := range calls {
		for rank, err := range errs[i] {
			if !errors.Is(err, mpi.ErrMismatch) {
				t.Errorf("%s: rank %d: %v", call.name, rank, err)
				continue
			}
			found := false
			for _, text := range call.want {
				found = found || len(text) > 0 && strings.Contains(err.Error(), text)
			}
			if !found {
				t.Errorf("%s: rank %d: %v", call.name, rank, err)
			}
		}
	}
	require.NotEmpty(t, calls)
}
