package osu

import (
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// A collective is one of the collective calls. A size is n elements: the data of one rank for
// one other, or the data that is reduced.
type collective struct {
	name, title          string
	sendCount, recvCount func(n, ranks int) int // elements that a rank sends and receives
	invoke               func(*collectiveCall) error
	wantElem             func(x *collectiveCall, j int) int // the j-th received element
	rooted               bool                               // only the root receives
}

// A collectiveCall is one call that is repeated.
type collectiveCall struct {
	c                    *mpi.Comm
	rank, size           int // number of ranks
	n                    int // elements
	root                 int
	iteration            int
	send, recv           mpi.Buffer
	recvParts, sendParts []mpi.Buffer // sub-buffers for each rank
	counts, displs       []int        // counts and displacements in elements
	recvCounts           []int        // receive counts of Reduce_scatter
	data                 struct{ send, recv []byte }
}

func countN(n, _ int) int           { return n }
func countZero(int, int) int        { return 0 }
func countPerRank(n, ranks int) int { return n * ranks }

// countDivisible returns n rounded down to a multiple of ranks.
func countDivisible(n, ranks int) int { return n / ranks * ranks }
func countShare(n, ranks int) int     { return n / ranks }

// wantSum returns the j-th element of the sum over all ranks.
func (x *collectiveCall) wantSum(j int) (sum int) {
	for rank := range x.size {
		sum += testElement(x.iteration, rank, j)
	}
	return sum
}

// wantGathered returns the j-th element of the concatenated data of all ranks.
func (x *collectiveCall) wantGathered(j int) int { return testElement(x.iteration, j/x.n, j%x.n) }

// wantScattered returns the j-th element of the root's data for this rank.
func (x *collectiveCall) wantScattered(j int) int {
	return testElement(x.iteration, x.root, x.rank*x.n+j)
}

// wantExchanged returns the j-th element of the concatenated data of all ranks for this rank.
func (x *collectiveCall) wantExchanged(j int) int {
	return testElement(x.iteration, j/x.n, x.rank*x.n+j%x.n)
}

var collectives = []collective{
	{name: "allgather", title: "Allgather", sendCount: countN, recvCount: countPerRank, wantElem: (*collectiveCall).wantGathered,
		invoke: func(x *collectiveCall) error { return x.c.Allgather(x.send, x.recv) }},
	{name: "allgatherv", title: "Allgatherv", sendCount: countN, recvCount: countPerRank, wantElem: (*collectiveCall).wantGathered,
		invoke: func(x *collectiveCall) error { return x.c.Allgatherv(x.send, x.recv, x.counts, x.displs) }},
	{name: "allreduce", title: "Allreduce", sendCount: countN, recvCount: countN, wantElem: (*collectiveCall).wantSum,
		invoke: func(x *collectiveCall) error { return x.c.Allreduce(x.send, x.recv, mpi.Sum) }},
	{name: "alltoall", title: "All-to-All Personalized Exchange", sendCount: countPerRank, recvCount: countPerRank, wantElem: (*collectiveCall).wantExchanged,
		invoke: func(x *collectiveCall) error { return x.c.Alltoall(x.send, x.recv) }},
	{name: "alltoallv", title: "All-to-Allv Personalized Exchange", sendCount: countPerRank, recvCount: countPerRank, wantElem: (*collectiveCall).wantExchanged,
		invoke: func(x *collectiveCall) error {
			return x.c.Alltoallv(x.send, x.counts, x.displs, x.recv, x.counts, x.displs)
		}},
	{name: "alltoallw", title: "All-to-Allw Personalized Exchange", sendCount: countPerRank, recvCount: countPerRank, wantElem: (*collectiveCall).wantExchanged,
		invoke: func(x *collectiveCall) error { return x.c.Alltoallw(x.sendParts, x.recvParts) }},
	{name: "barrier", title: "Barrier", sendCount: countZero, recvCount: countZero},
	{name: "bcast", title: "Broadcast", sendCount: countZero, recvCount: countN,
		wantElem: func(x *collectiveCall, j int) int { return testElement(x.iteration, x.root, j) },
		invoke:   func(x *collectiveCall) error { return x.c.Bcast(x.recv, x.root) }},
	{name: "gather", title: "Gather", sendCount: countN, recvCount: countPerRank, rooted: true, wantElem: (*collectiveCall).wantGathered,
		invoke: func(x *collectiveCall) error { return x.c.Gather(x.send, x.recv, x.root) }},
	{name: "gatherv", title: "Gatherv", sendCount: countN, recvCount: countPerRank, rooted: true, wantElem: (*collectiveCall).wantGathered,
		invoke: func(x *collectiveCall) error { return x.c.Gatherv(x.send, x.recv, x.counts, x.displs, x.root) }},
	{name: "reduce", title: "Reduce", sendCount: countN, recvCount: countN, rooted: true, wantElem: (*collectiveCall).wantSum,
		invoke: func(x *collectiveCall) error { return x.c.Reduce(x.send, x.recv, mpi.Sum, x.root) }},
	{name: "reduce_scatter", title: "Reduce_scatter", sendCount: countN, recvCount: countN, // each rank receives its share
		wantElem: func(x *collectiveCall, j int) int { return x.wantSum(x.elemsBefore() + j) },
		invoke:   func(x *collectiveCall) error { return x.c.ReduceScatter(x.send, x.recv, x.recvCounts, mpi.Sum) }},
	{name: "reduce_scatter_block", title: "Reduce_scatter_block", sendCount: countDivisible, recvCount: countShare,
		wantElem: func(x *collectiveCall, j int) int { return x.wantSum(x.rank*(x.n/x.size) + j) },
		invoke:   func(x *collectiveCall) error { return x.c.ReduceScatterBlock(x.send, x.recv, mpi.Sum) }},
	{name: "scatter", title: "Scatter", sendCount: countPerRank, recvCount: countN, wantElem: (*collectiveCall).wantScattered,
		invoke: func(x *collectiveCall) error { return x.c.Scatter(x.send, x.recv, x.root) }},
	{name: "scatterv", title: "Scatterv", sendCount: countPerRank, recvCount: countN, wantElem: (*collectiveCall).wantScattered,
		invoke: func(x *collectiveCall) error { return x.c.Scatterv(x.send, x.counts, x.displs, x.recv, x.root) }},
}

// bufferSize returns the larger of the two buffer sizes, in bytes for a size in bytes.
func (c *collective) bufferSize(size, ranks int) int {
	return max(c.sendCount(size, ranks), c.recvCount(size, ranks))
}

// newCall allocates the buffers for a size.
func (r *runner) newCall(size int) *collectiveCall {
	t := r.o.Type
	x := &collectiveCall{c: r.c, rank: r.c.Rank(), size: r.c.Size(), n: size / t.elemSize(), root: r.o.Root}
	for i := range x.size {
		x.counts, x.displs = append(x.counts, x.n), append(x.displs, i*x.n)
		share := x.n / x.size
		if i < x.n%x.size {
			share++
		}
		x.recvCounts = append(x.recvCounts, share)
	}
	in := r.t.coll.recvCount(x.n, x.size)
	if r.t.coll.name == "reduce_scatter" {
		in = x.recvCounts[x.rank]
	}
	x.data.send, x.data.recv = alignedBytes(r.t.coll.sendCount(x.n, x.size)*t.elemSize()), alignedBytes(in*t.elemSize())
	x.send, x.recv = t.bufferOf(x.data.send), t.bufferOf(x.data.recv)
	if r.t.coll.name == "alltoallw" {
		for i := range x.size {
			x.sendParts, x.recvParts = append(x.sendParts, x.send.Slice(x.displs[i], x.displs[i]+x.n)), append(x.recvParts, x.recv.Slice(x.displs[i], x.displs[i]+x.n))
		}
	}
	return x
}

// elemsBefore returns the number of elements of a scattered sum that lower ranks receive.
func (x *collectiveCall) elemsBefore() (n int) {
	for _, share := range x.recvCounts[:x.rank] {
		n += share
	}
	return n
}

// measureCollective measures the duration of a call, averaged over ranks, which start together.
func (r *runner) measureCollective(rd round) (Row, error) {
	x := r.newCall(rd.size)
	do := r.t.coll.invoke
	if do == nil {
		do = func(x *collectiveCall) error { return x.c.Barrier() }
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
			rd.addSample(time.Since(start))
		}
		if r.t.coll.invoke != nil {
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

// prepareCall writes data to validate.
func (r *runner) prepareCall(x *collectiveCall) {
	r.o.Type.fillElements(x.data.send, x.iteration, x.rank)
	clear(x.data.recv)
	if r.t.coll.name == "bcast" && x.rank == x.root {
		r.o.Type.fillElements(x.data.recv, x.iteration, x.rank)
	}
}

// checkCall returns the number of wrong elements. Sums of characters are computed modulo 256.
func (r *runner) checkCall(x *collectiveCall) (wrong int) {
	if r.t.coll.wantElem == nil || r.t.coll.rooted && x.rank != x.root {
		return 0
	}
	t := r.o.Type
	for j := range len(x.data.recv) / t.elemSize() {
		want := r.t.coll.wantElem(x, j)
		if t == Char {
			want = int(int8(want))
		}
		if t.getElement(x.data.recv, j) != want {
			wrong++
		}
	}
	return wrong
}

// collectiveRow returns the row for rank 0.
func (r *runner) collectiveRow(rd round, wrong int) (Row, error) {
	wrong, err := r.sumErrors(wrong)
	if err != nil {
		return Row{}, err
	}
	mine := toMicros(rd.total) / float64(rd.Iterations)
	row := Row{Size: rd.size, Iterations: rd.Iterations, Errors: wrong}
	if err := r.c.Reduce(mpi.Value(&mine), mpi.Value(&row.Latency), mpi.Sum, 0); err != nil {
		return Row{}, err
	}
	row.Latency /= float64(r.c.Size())
	if err := r.reduceMinMax(mine, mine, &row); err != nil {
		return Row{}, err
	}
	if rd.samples == nil {
		return row, nil
	}
	mean := make([]float64, len(rd.samples)) // average of each call over ranks
	if err := r.c.Reduce(mpi.Of(rd.samples), mpi.Of(mean), mpi.Sum, 0); err != nil {
		return Row{}, err
	}
	for i := range mean {
		mean[i] /= float64(r.c.Size())
	}
	row.Tail = percentilesOf(mean, r.o.Tail)
	return row, nil
}
