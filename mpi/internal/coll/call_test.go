package coll_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// TestSequence makes several collective calls with one Call; ranks that are done start the next one
// before the others are.
func TestSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		var list []scenario
		var wants []expected
		for range rapid.IntRange(1, 12).Draw(t, "calls") {
			what := rapid.SampledFrom(coll.Collectives()).Draw(t, "what")
			s := scenario{
				what: what, n: n, root: rapid.IntRange(0, n-1).Draw(t, "root"), size: rapid.IntRange(0, 20).Draw(t, "size"),
				inPlace: rapid.Bool().Draw(t, "inPlace"), op: rapid.SampledFrom(operations).Draw(t, "op"),
			}
			var names []string
			for _, a := range coll.Algorithms(what) {
				names = append(names, a.Name)
			}
			s.algorithm = rapid.SampledFrom(names).Draw(t, "algorithm")
			list = append(list, s)
			wants = append(wants, s.expect(rand.New(rand.NewPCG(seed, uint64(len(list))))))
		}
		w := newWorld(n, rand.New(rand.NewPCG(seed, 0)))
		err := w.run(func(r *rank) error {
			c := r.call(nil)
			for i, s := range list {
				c.Choices = coll.Choices{s.what: s.algorithm}
				got, err := wants[i].call(c, r.id)
				if err != nil {
					return err
				}
				if string(got) != string(wants[i].results[r.id]) {
					return fmt.Errorf("call %d, %v: it has %x, not %x", i, s, got, wants[i].results[r.id])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%v: %v", list, err)
		}
	})
}

// TestFaults fails a message and checks that the call of the receiver fails with an error that
// names the step, and that scratch memory, which the network may still use, is not reused.
func TestFaults(t *testing.T) {
	errFault := errors.New("the cable is cut")
	for _, what := range coll.Collectives() {
		for _, a := range coll.Algorithms(what) {
			s := scenario{what: what, algorithm: a.Name, n: 6, size: 9, segment: 4, seed: 5}
			if reducing(what) {
				s.op = sum
			}
			whole := newWorld(s.n, rand.New(rand.NewPCG(1, 2)))
			require.NoError(t, s.run(whole))
			chances := whole.messages + whole.glances
			for _, bad := range []int{1, chances/2 + 1, chances} {
				w := newWorld(s.n, rand.New(rand.NewPCG(1, 2)))
				delivered, victim := 0, -1
				w.fault = func(_, to int) error {
					if delivered++; delivered == bad {
						victim = to
						return errFault
					}
					return nil
				}
				require.Error(t, s.run(w))
				require.GreaterOrEqual(t, victim, 0)
				r := w.ranks[victim]
				require.ErrorIs(t, r.err, errFault)
				require.ErrorContains(t, r.err, fmt.Sprintf("coll: %v by %s at rank %d of 6: ", what, a.Name, victim))
				require.Zero(t, r.memory.back, "of %d bytes", r.memory.now)
			}
		}
	}
}

// TestFailingOperation checks the same for an operation that fails.
func TestFailingOperation(t *testing.T) {
	errOp := errors.New("division by zero")
	fails := operation{Reduction: reduction(2, true, func(_, _ []byte) error { return errOp }), name: "fails"}
	for _, what := range coll.Collectives() {
		if !reducing(what) {
			continue
		}
		for _, a := range coll.Algorithms(what) {
			w := newWorld(5, rand.New(rand.NewPCG(1, 2)))
			require.Error(t, w.run(func(r *rank) error {
				c := r.call(coll.Choices{what: a.Name})
				send, recv := make([]byte, 20), make([]byte, 20)
				switch what {
				case coll.Reduce:
					return c.Reduce(3, send, recv, fails.Reduction)
				case coll.Allreduce:
					return c.Allreduce(send, recv, fails.Reduction)
				case coll.Scan:
					return c.Scan(send, recv, fails.Reduction)
				case coll.Exscan:
					return c.Exscan(send, recv, fails.Reduction)
				case coll.ReduceScatter:
					return c.ReduceScatter(send, recv[:4], []int{4, 4, 4, 4, 4}, fails.Reduction)
				}
				return c.ReduceScatterBlock(send, recv[:4], fails.Reduction)
			}))
			failed := 0
			for _, r := range w.ranks {
				if errors.Is(r.err, errOp) {
					failed++
				}
			}
			require.Positive(t, failed, "%v by %s", what, a.Name)
		}
	}
}

// TestArguments checks that calls with invalid arguments return an error before any message is
// sent.
func TestArguments(t *testing.T) {
	b := make([]byte, 64)
	part := func(at, n int) []coll.Part { return []coll.Part{{At: 0, Len: 1}, {At: at, Len: n}, {At: 2, Len: 2}} }
	for _, c := range []struct {
		call func(c *coll.Call) error
		want string
	}{
		{func(c *coll.Call) error { return c.Bcast(3, b) }, "bcast at rank 1: root 3 of 3 ranks"},
		{func(c *coll.Call) error { return c.Bcast(-1, b) }, "root -1 of 3 ranks"},
		{func(c *coll.Call) error { return c.Gather(1, b[:4], b[:11]) }, "gather at rank 1: buffer of 11 bytes, want 4 for each of 3 ranks"},
		{func(c *coll.Call) error { return c.Gatherv(1, b[:4], b, part(60, 5)) }, "part of rank 1: 5 bytes at offset 60, buffer has 64"},
		{func(c *coll.Call) error { return c.Gatherv(1, b[:4], b, part(-1, 4)) }, "4 bytes at offset -1"},
		{func(c *coll.Call) error { return c.Gatherv(1, b[:4], b, part(0, -4)) }, "-4 bytes at offset 0"},
		{func(c *coll.Call) error { return c.Gatherv(1, b[:4], b, part(4, 3)) }, "send buffer of 4 bytes, want 3"},
		{func(c *coll.Call) error { return c.Gatherv(1, b[:4], b, part(4, 4)[:2]) }, "2 parts for 3 ranks"},
		{func(c *coll.Call) error { return c.Scatter(1, b[:10], b[:3]) }, "send buffer of 10 bytes, want 3 for each of 3 ranks"},
		{func(c *coll.Call) error { return c.Scatterv(1, b, part(4, 3), b[:4]) }, "receive buffer of 4 bytes, want 3"},
		{func(c *coll.Call) error { return c.Scatterv(1, b, nil, b[:4]) }, "0 parts"},
		{func(c *coll.Call) error { return c.Allgather(b[:3], b[:10]) }, "buffer of 10 bytes, want 3 for each"},
		{func(c *coll.Call) error { return c.Allgatherv(b[:3], b, part(4, 4)) }, "send buffer of 3 bytes, want 4"},
		{func(c *coll.Call) error { return c.Allgatherv(b[:3], b, nil) }, "0 parts"},
		{func(c *coll.Call) error { return c.Alltoall(b[:9], b[:12]) }, "send buffer of 9 bytes, receive buffer of 12"},
		{func(c *coll.Call) error { return c.Alltoall(b[:10], b[20:30]) }, "send buffer of 10 bytes, receive buffer of 10"},
		{func(c *coll.Call) error { return c.Alltoallv(b, nil, b, nil) }, "0 parts"},
		{func(c *coll.Call) error { return c.Alltoallv(b, part(4, 4), b, nil) }, "0 parts"},
		{func(c *coll.Call) error { return c.Alltoallv(b, part(4, 4), make([]byte, 64), part(4, 3)) }, "send 4 bytes to rank 1, receive 3 from it: want equal sizes"},
		{func(c *coll.Call) error {
			return c.Alltoallw([][]byte{b[:3], b[4:5], b[8:9]}, [][]byte{b[:2], b[4:5], b[8:9]})
		}, "send 3 bytes to rank 0, receive 2 from it: want equal sizes"},
		{func(c *coll.Call) error { return c.Alltoallw(nil, [][]byte{b, b, b}) }, "0 send slices, 3 receive slices"},
		{func(c *coll.Call) error { return c.Reduce(1, b[:8], b[:4], sum.Reduction) }, "result of 8 bytes, buffer of 4"},
		{func(c *coll.Call) error { return c.Reduce(1, b[:6], b[:6], sum.Reduction) }, "6 bytes, want a multiple of the element size 4"},
		{func(c *coll.Call) error { return c.Allreduce(b[:4], b[:8], sum.Reduction) }, "result of 4 bytes, buffer of 8"},
		{func(c *coll.Call) error { return c.Scan(b[:4], b[:4], coll.Reduction{}) }, "no operation"},
		{func(c *coll.Call) error { return c.ReduceScatter(b[:12], b[:4], []int{4, 4}, sum.Reduction) }, "2 counts"},
		{func(c *coll.Call) error { return c.ReduceScatter(b[:12], b[:4], []int{4, 6, 2}, sum.Reduction) }, "count of rank 1 is 6 bytes"},
		{func(c *coll.Call) error { return c.ReduceScatter(b[:12], b[:4], []int{4, -4, 12}, sum.Reduction) }, "count of rank 1 is -4 bytes"},
		{func(c *coll.Call) error { return c.ReduceScatter(b[:12], b[:4], []int{4, 4, 8}, sum.Reduction) }, "count of rank 2 is 8 bytes"},
		{func(c *coll.Call) error { return c.ReduceScatter(b[:16], b[:4], []int{4, 4, 4}, sum.Reduction) }, "counts of 12 bytes, 4 for this rank, vector of 16 bytes"},
		{func(c *coll.Call) error { return c.ReduceScatter(b[:12], b[:8], []int{4, 4, 4}, sum.Reduction) }, "buffer of 8"},
		{func(c *coll.Call) error { return c.ReduceScatterBlock(b[:12], b[:8], sum.Reduction) }, "vector of 12 bytes, want 8 for each of 3 ranks"},
		{func(c *coll.Call) error { return c.ReduceScatterBlock(b[:18], b[:6], sum.Reduction) }, "6 bytes, want a multiple of the element size 4"},
	} {
		w := newWorld(3, nil)
		_ = w.run(func(r *rank) error {
			if r.id != 1 {
				return nil
			}
			return c.call(r.call(nil))
		})
		require.ErrorIs(t, w.ranks[1].err, coll.ErrArgument, c.want)
		require.ErrorContains(t, w.ranks[1].err, c.want)
		require.Zero(t, w.messages)
	}
}

// void is a network whose messages arrive at once, without content.
type void struct {
	rank, size int
	memory     [8][]byte
	taken      int
}

func (v *void) Rank() int                      { return v.rank }
func (v *void) Size() int                      { return v.size }
func (v *void) Isend(int, []byte) coll.Request { return v }
func (v *void) Irecv(int, []byte) coll.Request { return v }
func (v *void) Wait(...coll.Request) error     { return nil }
func (v *void) Free([]byte)                    { v.taken-- }
func (v *void) Alloc(n int) []byte {
	v.taken++
	return v.memory[v.taken-1][:n]
}

// TestNoAllocation checks that a Call that has been used before allocates nothing if its network
// and memory do not.
func TestNoAllocation(t *testing.T) {
	v := &void{rank: 3, size: 7}
	for i := range v.memory {
		v.memory[i] = make([]byte, 4096)
	}
	c := &coll.Call{Net: v, Memory: v}
	nothing := coll.Reduction{Size: 4, Reduce: func(_, _ []byte) error { return nil }}
	a, b := make([]byte, 7*64), make([]byte, 7*64)
	for name, f := range map[string]func() error{
		"barrier":   func() error { return c.Barrier() },
		"bcast":     func() error { return c.Bcast(2, a) },
		"gather":    func() error { return c.Gather(3, a[:64], b) },
		"scatter":   func() error { return c.Scatter(3, b, a[:64]) },
		"reduce":    func() error { return c.Reduce(1, a, b, nothing) },
		"allreduce": func() error { return c.Allreduce(a, b, nothing) },
		"alltoall":  func() error { return c.Alltoall(a, b) },
		"allgather": func() error { return c.Allgather(a[:64], b) },
		"scan":      func() error { return c.Scan(a, b, nothing) },
	} {
		require.NoError(t, f())
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				panic(err)
			}
		}), name)
		require.Zero(t, v.taken)
	}
	// Without Memory the Call allocates.
	c.Memory = nil
	require.NoError(t, c.Allreduce(a, b, nothing))
}
