package osu

import (
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// collective is one of the calls. A size is n elements: what one rank has for one
// other, or what is reduced.
type collective struct {
	name, title string
	out, in     func(n, ranks int) int // elements that a rank sends and receives
	do          func(*call) error
	want        func(x *call, j int) int // the j-th element that is received
	rooted      bool                     // by the root only
}

// call is one call, made again and again.
type call struct {
	c          *mpi.Comm
	rank, size int // of ranks
	n          int // elements
	root       int
	iteration  int
	send, recv mpi.Buffer
	in, out    []mpi.Buffer // the same in pieces
	counts, at []int        // of the pieces, in elements
	share      []int        // of a reduction that is scattered
	data       struct{ send, recv []byte }
}

func one(n, _ int) int      { return n }
func none(int, int) int     { return 0 }
func each(n, ranks int) int { return n * ranks }

// whole is n elements cut into equal pieces, without the rest.
func whole(n, ranks int) int { return n / ranks * ranks }
func piece(n, ranks int) int { return n / ranks }

// Those of a sum, of all ranks' elements.
func (x *call) sum(j int) (sum int) {
	for rank := range x.size {
		sum += element(x.iteration, rank, j)
	}
	return sum
}

// gathered is the j-th element when all ranks' are in a row.
func (x *call) gathered(j int) int { return element(x.iteration, j/x.n, j%x.n) }

// scattered is the j-th element of our piece of the root's.
func (x *call) scattered(j int) int { return element(x.iteration, x.root, x.rank*x.n+j) }

// exchanged is the j-th element when all ranks' pieces for us are in a row.
func (x *call) exchanged(j int) int { return element(x.iteration, j/x.n, x.rank*x.n+j%x.n) }

var collectives = []collective{
	{name: "allgather", title: "Allgather", out: one, in: each, want: (*call).gathered,
		do: func(x *call) error { return x.c.Allgather(x.send, x.recv) }},
	{name: "allgatherv", title: "Allgatherv", out: one, in: each, want: (*call).gathered,
		do: func(x *call) error { return x.c.Allgatherv(x.send, x.recv, x.counts, x.at) }},
	{name: "allreduce", title: "Allreduce", out: one, in: one, want: (*call).sum,
		do: func(x *call) error { return x.c.Allreduce(x.send, x.recv, mpi.Sum) }},
	{name: "alltoall", title: "All-to-All Personalized Exchange", out: each, in: each, want: (*call).exchanged,
		do: func(x *call) error { return x.c.Alltoall(x.send, x.recv) }},
	{name: "alltoallv", title: "All-to-Allv Personalized Exchange", out: each, in: each, want: (*call).exchanged,
		do: func(x *call) error { return x.c.Alltoallv(x.send, x.counts, x.at, x.recv, x.counts, x.at) }},
	{name: "alltoallw", title: "All-to-Allw Personalized Exchange", out: each, in: each, want: (*call).exchanged,
		do: func(x *call) error { return x.c.Alltoallw(x.out, x.in) }},
	{name: "barrier", title: "Barrier", out: none, in: none},
	{name: "bcast", title: "Broadcast", out: none, in: one,
		want: func(x *call, j int) int { return element(x.iteration, x.root, j) },
		do:   func(x *call) error { return x.c.Bcast(x.recv, x.root) }},
	{name: "gather", title: "Gather", out: one, in: each, rooted: true, want: (*call).gathered,
		do: func(x *call) error { return x.c.Gather(x.send, x.recv, x.root) }},
	{name: "gatherv", title: "Gatherv", out: one, in: each, rooted: true, want: (*call).gathered,
		do: func(x *call) error { return x.c.Gatherv(x.send, x.recv, x.counts, x.at, x.root) }},
	{name: "reduce", title: "Reduce", out: one, in: one, rooted: true, want: (*call).sum,
		do: func(x *call) error { return x.c.Reduce(x.send, x.recv, mpi.Sum, x.root) }},
	{name: "reduce_scatter", title: "Reduce_scatter", out: one, in: one, // of which a rank gets its share
		want: func(x *call, j int) int { return x.sum(x.before() + j) },
		do:   func(x *call) error { return x.c.ReduceScatter(x.send, x.recv, x.share, mpi.Sum) }},
	{name: "reduce_scatter_block", title: "Reduce_scatter_block", out: whole, in: piece,
		want: func(x *call, j int) int { return x.sum(x.rank*(x.n/x.size) + j) },
		do:   func(x *call) error { return x.c.ReduceScatterBlock(x.send, x.recv, mpi.Sum) }},
	{name: "scatter", title: "Scatter", out: each, in: one, want: (*call).scattered,
		do: func(x *call) error { return x.c.Scatter(x.send, x.recv, x.root) }},
	{name: "scatterv", title: "Scatterv", out: each, in: one, want: (*call).scattered,
		do: func(x *call) error { return x.c.Scatterv(x.send, x.counts, x.at, x.recv, x.root) }},
}

// span is the larger of the buffers, in bytes for a size in bytes.
func (c *collective) span(size, ranks int) int { return max(c.out(size, ranks), c.in(size, ranks)) }

// newCall makes the buffers for a size.
func (r *runner) newCall(size int) *call {
	t := r.o.Type
	x := &call{c: r.c, rank: r.c.Rank(), size: r.c.Size(), n: size / t.size(), root: r.o.Root}
	for i := range x.size {
		x.counts, x.at = append(x.counts, x.n), append(x.at, i*x.n)
		share := x.n / x.size
		if i < x.n%x.size {
			share++
		}
		x.share = append(x.share, share)
	}
	in := r.t.coll.in(x.n, x.size)
	if r.t.coll.name == "reduce_scatter" {
		in = x.share[x.rank]
	}
	x.data.send, x.data.recv = memory(r.t.coll.out(x.n, x.size)*t.size()), memory(in*t.size())
	x.send, x.recv = t.of(x.data.send), t.of(x.data.recv)
	if r.t.coll.name == "alltoallw" {
		for i := range x.size {
			x.out, x.in = append(x.out, x.send.Slice(x.at[i], x.at[i]+x.n)), append(x.in, x.recv.Slice(x.at[i], x.at[i]+x.n))
		}
	}
	return x
}

// before are the elements of a scattered sum that lower ranks get.
func (x *call) before() (n int) {
	for _, share := range x.share[:x.rank] {
		n += share
	}
	return n
}

// collective is how long a call takes, on average over ranks, which begin together.
func (r *runner) collective(rd round) (Row, error) {
	x := r.newCall(rd.size)
	do := r.t.coll.do
	if do == nil {
		do = func(x *call) error { return x.c.Barrier() }
	}
	wrong := 0
	if err := r.c.Barrier(); err != nil {
		return Row{}, err
	}
	for x.iteration = range rd.Warmup + rd.Iterations {
		if r.o.Rotate {
			x.root = x.iteration % x.size
		}
		if r.o.Validate {
			r.prepareCall(x)
			if err := r.c.Barrier(); err != nil {
				return Row{}, err
			}
		}
		start := time.Now()
		if err := do(x); err != nil {
			return Row{}, err
		}
		if x.iteration >= rd.Warmup {
			rd.add(time.Since(start))
		}
		if r.t.coll.do != nil {
			if err := r.c.Barrier(); err != nil {
				return Row{}, err
			}
		}
		if r.o.Validate {
			wrong += r.checkCall(x)
		}
	}
	return r.collectiveRow(rd, wrong)
}

// prepareCall makes data to be looked at.
func (r *runner) prepareCall(x *call) {
	r.o.Type.fill(x.data.send, x.iteration, x.rank)
	clear(x.data.recv)
	if r.t.coll.name == "bcast" && x.rank == x.root {
		r.o.Type.fill(x.data.recv, x.iteration, x.rank)
	}
}

// checkCall counts elements that are wrong. Sums of characters are so modulo 256.
func (r *runner) checkCall(x *call) (wrong int) {
	if r.t.coll.want == nil || r.t.coll.rooted && x.rank != x.root {
		return 0
	}
	t := r.o.Type
	for j := range len(x.data.recv) / t.size() {
		want := r.t.coll.want(x, j)
		if t == Char {
			want = int(int8(want))
		}
		if t.get(x.data.recv, j) != want {
			wrong++
		}
	}
	return wrong
}

// collectiveRow is the row for rank 0.
func (r *runner) collectiveRow(rd round, wrong int) (Row, error) {
	wrong, err := r.sum(wrong)
	if err != nil {
		return Row{}, err
	}
	mine := us(rd.total) / float64(rd.Iterations)
	row := Row{Size: rd.size, Iterations: rd.Iterations, Errors: wrong}
	if err := r.c.Reduce(mpi.Value(&mine), mpi.Value(&row.Latency), mpi.Sum, 0); err != nil {
		return Row{}, err
	}
	row.Latency /= float64(r.c.Size())
	if err := r.extremes(mine, mine, &row); err != nil {
		return Row{}, err
	}
	if rd.samples == nil {
		return row, nil
	}
	mean := make([]float64, len(rd.samples)) // of each call, over ranks
	if err := r.c.Reduce(mpi.Of(rd.samples), mpi.Of(mean), mpi.Sum, 0); err != nil {
		return Row{}, err
	}
	for i := range mean {
		mean[i] /= float64(r.c.Size())
	}
	row.Tail = percentiles(mean, r.o.Tail)
	return row, nil
}
