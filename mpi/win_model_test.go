package mpi_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi"
)

// winCrew is a job whose ranks run one function after the other.
type winCrew struct {
	n    int
	work []chan func(mpi.World) error
	ends chan error
	dead bool // ranks may wait for one that has failed
}

// newWinCrew starts a job that ends with the test.
func newWinCrew(t *testing.T, n int, o mpi.Options) *winCrew {
	c := &winCrew{n: n, ends: make(chan error, n)}
	for range n {
		c.work = append(c.work, make(chan func(mpi.World) error))
	}
	var end sync.WaitGroup
	end.Go(func() {
		job(t, n, o, func(w mpi.World) error {
			for f := range c.work[w.Rank()] {
				err := f(w)
				if err != nil {
					err = fmt.Errorf("rank %d: %w", w.Rank(), err)
				}
				c.ends <- err
			}
			return nil
		})
	})
	t.Cleanup(func() {
		if !c.dead {
			for _, ch := range c.work {
				close(ch)
			}
			end.Wait()
		}
	})
	return c
}

// do runs f on all ranks.
func (c *winCrew) do(f func(mpi.World) error) error {
	for _, ch := range c.work {
		ch <- f
	}
	var errs error
	over := time.After(time.Minute)
	for range c.n {
		select {
		case err := <-c.ends:
			if err != nil && errs == nil {
				over = time.After(2 * time.Second)
			}
			errs = errors.Join(errs, err)
		case <-over:
			c.dead = true
			return errors.Join(errs, errors.New("other ranks do not end"))
		}
	}
	return errs
}

// The window of each rank has for each rank elements that only that one puts to and gets from, once
// in an epoch, and elements that only that one accumulates on, in its order. At the end are
// elements to which all ranks add.
const (
	privatePuts  = 12
	privateAccs  = 6
	commonPlaces = 5
)

// winMove is an operation of a rank with its expected result.
type winMove struct {
	what   string
	target int
	base   int         // the first of the elements from which it is drawn
	at     []mpi.Block // the elements, one after the other
	stride bool        // they are Strided
	gaps   bool        // in the origin's memory
	send   []int64
	cmp    int64
	op     mpi.Op
	want   []int64 // result
	flush  bool    // FlushLocal, or Flush, after it
}

// winEpoch has the operations of all ranks between two synchronization calls.
type winEpoch struct {
	how   string
	moves [][]winMove // by rank
}

// winProgram is a sequence of epochs with the expected memory after each.
type winProgram struct {
	n      int
	epochs []winEpoch
	after  [][][]int64 // by epoch and rank
}

func winPlaces(n int) int { return n*(privatePuts+privateAccs) + commonPlaces }

// winOps are the operations of reads; only reads have the last one, NoOp.
var winOps = []mpi.Op{mpi.Sum, mpi.Prod, mpi.Max, mpi.Min, mpi.BAnd, mpi.BOr, mpi.BXor, mpi.LXor, mpi.Replace, mpi.NoOp}

// drawWinProgram draws a program and computes its results.
func drawWinProgram(rt *rapid.T, n int) *winProgram {
	p := &winProgram{n: n}
	mem := make([][]int64, n)
	for r := range mem {
		mem[r] = make([]int64, winPlaces(n))
	}
	value := rapid.Int64Range(-50, 50)
	for range rapid.IntRange(1, 5).Draw(rt, "epochs") {
		e := winEpoch{how: rapid.SampledFrom([]string{"fence", "start", "lock", "lockall", "share"}).Draw(rt, "how"), moves: make([][]winMove, n)}
		for r := range n {
			puts := make([]map[int]bool, n) // elements that are used in this epoch
			for i := range puts {
				puts[i] = map[int]bool{}
			}
			for range rapid.IntRange(0, 8).Draw(rt, "moves") {
				m := winMove{target: rapid.IntRange(0, n-1).Draw(rt, "target"), op: mpi.Sum,
					what:  rapid.SampledFrom([]string{"put", "get", "add", "accumulate", "getacc", "fetch", "swap"}).Draw(rt, "what"),
					gaps:  rapid.Bool().Draw(rt, "gaps"),
					flush: rapid.Bool().Draw(rt, "flush")}
				to := mem[m.target]
				base, room := r*privatePuts, privatePuts
				switch m.what {
				case "accumulate", "getacc", "fetch", "swap":
					base, room = n*privatePuts+r*privateAccs, privateAccs
				case "add":
					base, room = n*(privatePuts+privateAccs), commonPlaces
				}
				m.base = base
				idx := m.drawTarget(rt, base, room)
				if m.what == "put" || m.what == "get" {
					if slices.ContainsFunc(idx, func(i int) bool { return puts[m.target][i] }) {
						continue
					}
					for _, i := range idx {
						puts[m.target][i] = true
					}
				}
				if m.what == "accumulate" || m.what == "getacc" || m.what == "fetch" {
					ops := winOps
					if m.what == "accumulate" {
						ops = ops[:len(ops)-1]
					}
					m.op = rapid.SampledFrom(ops).Draw(rt, "op")
				}
				m.cmp = rapid.SampledFrom([]int64{to[idx[0]], 7}).Draw(rt, "compare")
				for _, i := range idx {
					v := value.Draw(rt, "value")
					m.send = append(m.send, v)
					m.want = append(m.want, to[i])
					switch {
					case m.what == "get" || m.what == "swap" && to[i] != m.cmp:
					case m.what == "put" || m.what == "swap":
						to[i] = v
					default:
						x := []int64{to[i]}
						require.NoError(rt, applyOne(m.op, x, v))
						to[i] = x[0]
					}
				}
				e.moves[r] = append(e.moves[r], m)
			}
		}
		p.epochs = append(p.epochs, e)
		var after [][]int64
		for r := range mem {
			after = append(after, slices.Clone(mem[r]))
		}
		p.after = append(p.after, after)
	}
	return p
}

func applyOne(op mpi.Op, inout []int64, in int64) error {
	return mpi.ReduceLocal(mpi.Value(&in), mpi.Of(inout), op)
}

// drawTarget draws the target of an operation, and returns its elements.
func (m *winMove) drawTarget(rt *rapid.T, base, room int) (idx []int) {
	if m.what == "fetch" || m.what == "swap" {
		i := base + rapid.IntRange(0, room-1).Draw(rt, "place")
		m.at = []mpi.Block{{At: i, Len: 1}}
		return []int{i}
	}
	switch rapid.IntRange(0, 2).Draw(rt, "layout") {
	case 0: // contiguous
		i := rapid.IntRange(0, room-1).Draw(rt, "place")
		m.at = []mpi.Block{{At: base + i, Len: rapid.IntRange(1, room-i).Draw(rt, "length")}}
	case 1: // every second one
		m.stride = true
		for i := base; i < base+room; i += 2 {
			m.at = append(m.at, mpi.Block{At: i, Len: 1})
		}
	default:
		left := make([]int, room)
		for i := range left {
			left[i] = i
		}
		order := rapid.Permutation(left).Draw(rt, "places")
		for _, i := range order[:rapid.IntRange(1, room).Draw(rt, "length")] {
			m.at = append(m.at, mpi.Block{At: base + i, Len: 1})
		}
	}
	for _, b := range m.at {
		for i := range b.Len {
			idx = append(idx, b.At+i)
		}
	}
	return idx
}

// winWhere returns the displacement of an element of a rank's window.
type winWhere func(target, index int) int

// index returns the displacement in windows with a unit of one element.
func index(_, i int) int { return i }

// location returns the target location of an operation.
func (m *winMove) location(where winWhere) mpi.Place {
	switch {
	case m.stride:
		return mpi.At(where(m.target, m.at[0].At)).Strided(len(m.at), 1, 2)
	case len(m.at) == 1:
		return mpi.At(where(m.target, m.at[0].At))
	}
	blocks := slices.Clone(m.at)
	for i := range blocks {
		blocks[i].At -= m.base
	}
	return mpi.At(where(m.target, m.base)).Indexed(blocks)
}

// winResult is a result to be compared.
type winResult struct {
	m   *winMove
	got *memory
}

func (m *winMove) do(win *mpi.Win, where winWhere) (*winResult, error) {
	at, disp := m.location(where), where(m.target, m.at[0].At)
	send := newMemory(m.send, m.gaps)
	got := newMemory(blankElements(len(m.send)), m.gaps)
	switch m.what {
	case "put":
		return nil, win.Put(send.buffer(), m.target, at)
	case "get":
		return &winResult{m, got}, win.Get(got.buffer(), m.target, at)
	case "add", "accumulate":
		return nil, win.Accumulate(send.buffer(), m.target, at, m.op)
	case "getacc":
		return &winResult{m, got}, win.GetAccumulate(send.buffer(), got.buffer(), m.target, at, m.op)
	case "fetch":
		return &winResult{m, got}, win.FetchAndOp(send.buffer(), got.buffer(), m.target, disp, m.op)
	}
	return &winResult{m, got}, win.CompareAndSwap(send.buffer(), mpi.Value(&m.cmp), got.buffer(), m.target, disp)
}

// run executes a program at one rank.
func (p *winProgram) run(w mpi.World) error {
	mine := make([]int64, winPlaces(p.n))
	win, err := mpi.WinCreate(w.Comm, mine)
	if err != nil {
		return err
	}
	for i, e := range p.epochs {
		if err := e.run(win, w, p.n, index); err != nil {
			return fmt.Errorf("epoch %d, %s: %w", i, e.how, err)
		}
		if err := w.Barrier(); err != nil {
			return err
		}
		if err := win.Lock(mpi.LockShared, w.Rank()); err != nil {
			return err
		}
		if !reflect.DeepEqual(p.after[i][w.Rank()], mine) {
			return fmt.Errorf("after epoch %d, %s: memory is %v, not %v", i, e.how, mine, p.after[i][w.Rank()])
		}
		if err := win.Unlock(w.Rank()); err != nil {
			return err
		}
		if err := w.Barrier(); err != nil {
			return err
		}
	}
	return win.Free()
}

func (e *winEpoch) run(win *mpi.Win, w mpi.World, n int, where winWhere) error {
	var results []*winResult
	moves := func(target int) error {
		for i := range e.moves[w.Rank()] {
			m := &e.moves[w.Rank()][i]
			if target >= 0 && m.target != target {
				continue
			}
			r, err := m.do(win, where)
			if err != nil {
				return fmt.Errorf("%s: %w", m.what, err)
			}
			if r != nil {
				results = append(results, r)
			}
			if m.flush && e.how != "fence" && e.how != "start" {
				if err := win.Flush(m.target); err != nil {
					return err
				}
			}
		}
		return nil
	}
	steps := func(fs ...func() error) error {
		for _, f := range fs {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
	err := steps(func() error {
		switch e.how {
		case "fence":
			return steps(func() error { return win.Fence(mpi.NoPrecede) }, func() error { return moves(-1) }, func() error { return win.Fence(mpi.NoSucceed) })
		case "start":
			g := win.Group()
			return steps(func() error { return win.Post(g) }, func() error { return win.Start(g) }, func() error { return moves(-1) }, win.Complete, win.Wait)
		case "lockall":
			return steps(func() error { return win.LockAll() }, func() error { return moves(-1) }, win.UnlockAll)
		}
		kind := mpi.LockExclusive
		if e.how == "share" {
			kind = mpi.LockShared
		}
		for i := range n {
			to := (w.Rank() + i) % n
			if err := steps(func() error { return win.Lock(kind, to) }, func() error { return moves(to) }, func() error { return win.Unlock(to) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range results {
		if err := r.got.compare(fmt.Sprintf("%s %v of %d by %d", r.m.what, r.m.op, r.m.target, w.Rank()), r.m.want); err != nil {
			return err
		}
	}
	return nil
}

// TestWinModel executes random operations in random epochs and compares all results and memory with
// a model.
func TestWinModel(t *testing.T) {
	checkWinPrograms(t, func(rt *rapid.T, n int) func(mpi.World) error { return drawWinProgram(rt, n).run })
}

// checkWinPrograms draws programs for some ranks, and runs them on all nets.
func checkWinPrograms(t *testing.T, draw func(rt *rapid.T, n int) func(mpi.World) error) {
	for _, names := range [][]string{{"direct"}, {"messages"}, {"tcp"}, {"fast", "short", "ud"}} {
		t.Run(strings.Join(names, ","), func(t *testing.T) {
			crews := map[string]*winCrew{}
			rapid.Check(t, func(rt *rapid.T) {
				n, name := rapid.IntRange(1, 4).Draw(rt, "ranks"), rapid.SampledFrom(names).Draw(rt, "net")
				key := fmt.Sprint(n, name)
				if crews[key] == nil || crews[key].dead {
					crews[key] = newWinCrew(t, n, winNets[name])
				}
				err := crews[key].do(draw(rt, n))
				if err != nil {
					t.Log(err) // rapid may not draw it again
				}
				require.NoError(rt, err)
			})
		})
	}
}
