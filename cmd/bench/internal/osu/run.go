package osu

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// A Row is the result for one size.
type Row struct {
	Size       int     // bytes
	Latency    float64 // us, averaged over the measuring ranks
	Min, Max   float64 // us, of the fastest and the slowest rank
	Bandwidth  float64 // MB/s, 10^6 bytes
	Rate       float64 // messages per second
	Iterations int
	Tail       []float64 // percentiles of Options.Tail, in the unit of the test
	Errors     int       // wrong elements, with Options.Validate
}

// Run runs a test. It is collective: all ranks call it with the same options, and rank 0
// receives the rows. It stops with an ErrInvalid at the first size with wrong data.
func Run(c *mpi.Comm, t Test, o Options) ([]Row, error) {
	if err := o.Check(t, c.Size()); err != nil {
		return nil, err
	}
	r := newRunner(c, t, o)
	out := table{o: o, t: t}
	if c.Rank() == 0 {
		out.w = o.Out
	}
	if err := out.writeHeader(r); err != nil {
		return nil, err
	}
	var rows []Row
	for size := range r.sizeSeq() {
		row, err := t.measure(r, r.newRound(size))
		if err != nil {
			return rows, err
		}
		if c.Rank() == 0 {
			rows = append(rows, row)
			if err := out.writeRow(row); err != nil {
				return rows, err
			}
		}
		if row.Errors > 0 {
			return rows, fmt.Errorf("%w: osu_%s with %d bytes: %d wrong elements", ErrInvalid, t.Name, size, row.Errors)
		}
	}
	return rows, nil
}

// A runner is a rank's state of a test.
type runner struct {
	c          *mpi.Comm
	t          Test
	o          Options
	pairs      int // pairs of measuring ranks
	partner    int // the other rank of the pair, or mpi.ProcNull
	first      bool
	send, recv [][]byte // one buffer, or Options.Window buffers with Options.Multiple
}

func newRunner(c *mpi.Comm, t Test, o Options) *runner {
	r := &runner{c: c, t: t, o: o, pairs: 1, partner: mpi.ProcNull}
	if t.coll != nil {
		return r
	}
	if t.win != nil {
		r.first, r.partner = c.Rank() == 0, 1-c.Rank()
		return r
	}
	if t.pairs {
		if r.pairs = c.Size() / 2; t.shape == showRate && o.Pairs > 0 {
			r.pairs = o.Pairs
		}
	}
	switch rank := c.Rank(); {
	case rank < r.pairs:
		r.first, r.partner = true, rank+r.pairs
	case rank < 2*r.pairs:
		r.partner = rank - r.pairs
	}
	n := 1
	if o.Multiple && t.shape != showLatency {
		n = o.Window
	}
	for range n {
		r.send, r.recv = append(r.send, alignedBytes(o.Max)), append(r.recv, alignedBytes(o.Max))
	}
	return r
}

// sizeSeq yields the measured sizes in bytes: multiples of the element size, and for
// collectives those that fit into the memory limit. Tests without data yield 0, tests of a
// single element its size.
func (r *runner) sizeSeq() func(func(int) bool) {
	return func(yield func(int) bool) {
		if r.t.coll != nil && r.t.coll.invoke == nil {
			yield(0)
			return
		}
		if r.t.win != nil && r.t.win.singleElem {
			yield(r.o.Type.elemSize())
			return
		}
		for size := r.o.Min; size <= r.o.Max; size = max(1, 2*size) {
			aligned := size >= r.o.Type.elemSize() || size == 0
			if aligned && r.fitsMemory(size) && !yield(size) {
				return
			}
		}
	}
}

// fitsMemory reports whether a size fits into the memory limit of a collective.
func (r *runner) fitsMemory(size int) bool {
	return r.t.coll == nil || 2*r.t.coll.bufferSize(size, r.c.Size()) <= r.o.MemLimit
}

// A round is the measurement of one size.
type round struct {
	Rounds
	size int
	*stopwatch
}

func (r *runner) newRound(size int) round {
	x := round{r.o.Small, size, &stopwatch{}}
	if size > largeMessage {
		x.Rounds = r.o.Large
	}
	if len(r.o.Tail) > 0 {
		x.samples = make([]float64, 0, x.Iterations)
	}
	return x
}

// A stopwatch accumulates times, and keeps the samples if percentiles are requested.
type stopwatch struct {
	total   time.Duration
	samples []float64 // us
}

func (w *stopwatch) addSample(d time.Duration) {
	w.total += d
	if w.samples != nil {
		w.samples = append(w.samples, toMicros(d))
	}
}

func toMicros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// percentilesOf returns the given percentiles of values. It sorts values.
func percentilesOf(values []float64, percents []int) []float64 {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	list := make([]float64, len(percents))
	for i, p := range percents {
		at := int(math.Round(float64(len(values)*p)/100)) - 1
		list[i] = values[max(0, at)]
	}
	return list
}

// sumErrors returns the sum of n over all ranks, at all ranks.
func (r *runner) sumErrors(n int) (int, error) {
	if !r.o.Validate {
		return 0, nil
	}
	err := r.c.Allreduce(mpi.InPlace, mpi.Value(&n), mpi.Sum)
	return n, err
}
