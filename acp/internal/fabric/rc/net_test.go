package rc

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// rank is a rank that records its events, with its transport.
type rank struct {
	sync.Mutex
	net     *Net
	dev     *rnic.Device
	mem     fabric.Memory
	cards   map[int]string
	signals []uint32
	lost    map[int]error
}

func (r *rank) DoLocked(f func()) {
	r.Lock()
	defer r.Unlock()
	f()
}
func (r *rank) PeerFound(rank int, card []byte)   { r.cards[rank] = string(card) }
func (r *rank) PeerLost(rank int, why error)      { r.lost[rank] = why }
func (r *rank) HandleSignal(from int, imm uint32) { r.signals = append(r.signals, imm) }

// outcome records the completion of an operation.
type outcome struct {
	ends int
	err  error
}

func (o *outcome) OpDone(_ *fabric.Op, err error) { o.ends, o.err = o.ends+1, err }

// job is a set of ranks with shared memory.
type job struct {
	t     *testing.T
	ctx   context.Context
	ranks []*rank
}

const memory = 4 << 10

func start(t *testing.T, size int) *job {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	j := &job{t: t, ctx: ctx}
	var fences sync.WaitGroup
	for i, m := range pmi.NewLocal(size) {
		dev, err := rnic.Open(rnic.Options{Logger: slog.New(slog.DiscardHandler)}) // the test provokes queue pair errors
		require.NoError(t, err)
		r := &rank{dev: dev, cards: map[int]string{}, lost: map[int]error{}}
		r.net, err = New(dev, r, m, Options{})
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = r.net.Close(ctx)
			_ = dev.Close()
		})
		r.mem, err = r.net.Register(make([]byte, memory), true)
		require.NoError(t, err)
		require.NoError(t, r.net.ReserveSignals(4))
		require.NoError(t, r.net.Start(fmt.Appendf(nil, "card of %d", i)))
		j.ranks = append(j.ranks, r)
		fences.Go(func() { _ = m.Fence(ctx) })
	}
	fences.Wait()
	return j
}

// TestReserveSignals checks that a reservation that exceeds the limit leaves released signals to later ones.
func TestReserveSignals(t *testing.T) {
	r := start(t, 1).ranks[0]
	r.DoLocked(func() {
		r.net.ReleaseSignals(4)
		require.ErrorIs(t, r.net.ReserveSignals(maxReceives), verbs.ErrLimit)
		require.NoError(t, r.net.ReserveSignals(maxReceives-spare))
		require.ErrorIs(t, r.net.ReserveSignals(1), verbs.ErrLimit)
	})
}

// pollUntil makes all ranks poll until a condition holds.
func (j *job) pollUntil(ready func() bool) {
	j.t.Helper()
	for there := false; !there; {
		for _, r := range j.ranks {
			r.DoLocked(func() { r.net.Poll() })
		}
		j.ranks[0].DoLocked(func() { there = ready() })
		require.NoError(j.t, j.ctx.Err())
	}
}

// do executes operations of rank 0 on memory of rank 1, and returns their errors.
func (j *job) do(ops ...*fabric.Op) []outcome {
	j.t.Helper()
	ends := make([]outcome, len(ops))
	r := j.ranks[0]
	r.DoLocked(func() {
		for i, op := range ops {
			op.Owner = &ends[i]
			r.net.Post(1, op)
		}
		r.net.Flush()
	})
	j.pollUntil(func() bool {
		for _, e := range ends {
			if e.ends == 0 {
				return false
			}
		}
		return true
	})
	return ends
}

// op returns an operation of rank 0 at an offset of rank 1's memory.
func (j *job) op(kind fabric.Kind, at int) *fabric.Op {
	to := j.ranks[1].mem
	return &fabric.Op{Kind: kind, Addr: to.Addr() + uint64(at), RKey: to.RKey()}
}

// Random operations have the effects of the same accesses to plain memory, in order. Gets are last:
// an operation posted behind a get may be executed before it, unless there is a fence.
func TestOperations(t *testing.T) {
	j := start(t, 2)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	model, own := make([]byte, memory), j.ranks[0].mem.Bytes()
	for round := range 30 {
		var ops, gets []*fabric.Op
		var checks []func()
		free := 0 // of own, in this round
		for free < memory-200 && len(ops) < 100 {
			n := 1 + rng.IntN(200)
			at := 8 * rng.IntN((memory-200)/8)
			op := j.op(fabric.Kind(rng.IntN(4)), at)
			op.Mem, op.Off, op.N = j.ranks[0].mem, free, n
			op.Operand, op.Compare, op.Lazy = rng.Uint64(), rng.Uint64N(2), rng.IntN(3) == 0
			place := own[free : free+n]
			word := binary.NativeEndian.Uint64(model[at:])
			switch op.Kind {
			case fabric.Put:
				for i := range place {
					place[i] = byte(rng.Uint32())
				}
				copy(model[at:], place)
				if n <= fabric.InlineMax && rng.IntN(2) == 0 {
					op.Mem, op.N, op.Inline = nil, 0, append([]byte(nil), place...)
				}
			case fabric.Get:
				checks = append(checks, func() { require.Equal(t, model[at:at+n], place) })
				gets = append(gets, op)
			case fabric.CompareSwap:
				if rng.IntN(2) == 0 {
					op.Compare = word
				}
				if op.Compare == word {
					binary.NativeEndian.PutUint64(model[at:], op.Operand)
				}
			case fabric.FetchAdd:
				binary.NativeEndian.PutUint64(model[at:], word+op.Operand)
			}
			if op.Kind >= fabric.CompareSwap {
				checks = append(checks, func() { require.Equal(t, word, op.Old) })
			}
			free += n
			if op.Kind != fabric.Get {
				ops = append(ops, op)
			}
		}
		last := j.op(fabric.FetchAdd, memory-8) // completes the lazy operations as well
		for i, e := range j.do(append(append(ops, gets...), last)...) {
			require.NoError(t, e.err, "round %d, operation %d", round, i)
			require.Equal(t, 1, e.ends)
		}
		for _, check := range checks {
			check()
		}
		require.Equal(t, model, j.ranks[1].mem.Bytes(), "round %d", round)
	}
	require.Regexp(t, "^card of 1\x00*$", j.ranks[0].cards[1], "as long as the private data of a message")
	require.Empty(t, j.ranks[1].cards, "nothing connects back by itself")
}

// More atomics than result slots wait for a slot, and each finds the value of its predecessor.
func TestMoreAtomicsThanCells(t *testing.T) {
	j := start(t, 2)
	ops := make([]*fabric.Op, 3*maxAtomics)
	for i := range ops {
		ops[i] = j.op(fabric.FetchAdd, 0)
		ops[i].Operand = 1
	}
	for i, e := range j.do(ops...) {
		require.NoError(t, e.err)
		require.EqualValues(t, i, ops[i].Old)
	}
	require.Len(t, j.ranks[0].net.results.free, maxAtomics, "all are given back")
}

// An operation that the target refuses fails alone: those before and behind it are executed once,
// over a new connection, and signals arrive in order.
func TestRefused(t *testing.T) {
	j := start(t, 2)
	for round := range 3 {
		bad := map[int]func(op *fabric.Op){
			7:  func(op *fabric.Op) { op.RKey++ },
			20: func(op *fabric.Op) { op.Addr += memory },
			21: func(op *fabric.Op) { op.Addr += 4 }, // a misaligned atomic
		}
		ops := make([]*fabric.Op, 40)
		for i := range ops {
			ops[i] = j.op(fabric.FetchAdd, 8)
			ops[i].Operand = 1
			if i%20 == 10 {
				ops[i] = j.op(fabric.Put, 0)
				ops[i].Signal, ops[i].Imm = true, uint32(round<<8|i)
			}
			if spoil := bad[i]; spoil != nil {
				spoil(ops[i])
			}
		}
		for i, e := range j.do(ops...) {
			require.Equal(t, 1, e.ends)
			if bad[i] == nil {
				require.NoError(t, e.err, "operation %d", i)
			} else {
				require.ErrorIs(t, e.err, fabric.ErrAccess, "operation %d", i)
			}
		}
		require.EqualValues(t, 35*(round+1), binary.NativeEndian.Uint64(j.ranks[1].mem.Bytes()[8:]))
	}
	j.pollUntil(func() bool {
		n := 0
		j.ranks[1].DoLocked(func() { n = len(j.ranks[1].signals) })
		return n == 6
	})
	require.Equal(t, []uint32{10, 30, 1<<8 | 10, 1<<8 | 30, 2<<8 | 10, 2<<8 | 30}, j.ranks[1].signals)
	require.EqualValues(t, 9, j.ranks[0].net.Stats().Repaired)
	require.Zero(t, j.ranks[1].net.Stats().StraySignals)
	require.Len(t, j.ranks[0].net.results.free, maxAtomics)
}

// The operations on a rank that fails complete with an error, and later ones at once. Other ranks
// are not affected.
func TestLost(t *testing.T) {
	j := start(t, 3)
	require.NoError(t, j.do(j.op(fabric.FetchAdd, 0))[0].err)
	require.NoError(t, j.ranks[1].net.Close(j.ctx))
	gone := j.ranks[1]
	j.ranks = []*rank{j.ranks[0], j.ranks[2]}
	r := j.ranks[0]
	j.pollUntil(func() bool { return r.lost[1] != nil })
	require.ErrorIs(t, r.lost[1], fabric.ErrLost)
	var o, p outcome
	r.DoLocked(func() {
		r.net.Post(1, &fabric.Op{Kind: fabric.FetchAdd, Addr: gone.mem.Addr(), RKey: gone.mem.RKey(), Owner: &o})
		other := j.ranks[1].mem
		r.net.Post(2, &fabric.Op{Kind: fabric.FetchAdd, Addr: other.Addr(), RKey: other.RKey(), Owner: &p})
		r.net.Flush()
	})
	require.ErrorIs(t, o.err, fabric.ErrLost)
	j.pollUntil(func() bool { return p.ends == 1 })
	require.NoError(t, p.err)
}
