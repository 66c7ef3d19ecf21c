package mpi_test

import (
	"fmt"
	"testing"

	"github.com/softrnic/softrnic/mpi"
)

// trial is a set of parameters of a call: number of elements, contiguous or strided memory, in
// place or not, root.
type trial struct {
	n       int
	strided bool
	inPlace bool
	root    int
}

func (t trial) String() string {
	return fmt.Sprintf("%d elements, strided %v, in place %v, root %d", t.n, t.strided, t.inPlace, t.root)
}

// collectiveCaller makes the calls of a communicator: blocking, or in other forms.
type collectiveCaller interface {
	Barrier() error
	Bcast(b mpi.Buffer, root int) error
	Gather(send, recv mpi.Buffer, root int) error
	Gatherv(send, recv mpi.Buffer, counts, displs []int, root int) error
	Scatter(send, recv mpi.Buffer, root int) error
	Scatterv(send mpi.Buffer, counts, displs []int, recv mpi.Buffer, root int) error
	Allgather(send, recv mpi.Buffer) error
	Allgatherv(send, recv mpi.Buffer, counts, displs []int) error
	Alltoall(send, recv mpi.Buffer) error
	Alltoallv(send mpi.Buffer, sendCounts, sendDispls []int, recv mpi.Buffer, recvCounts, recvDispls []int) error
	Alltoallw(send, recv []mpi.Buffer) error
	Reduce(send, recv mpi.Buffer, op mpi.Op, root int) error
	Allreduce(send, recv mpi.Buffer, op mpi.Op) error
	ReduceScatter(send, recv mpi.Buffer, counts []int, op mpi.Op) error
	ReduceScatterBlock(send, recv mpi.Buffer, op mpi.Op) error
	Scan(send, recv mpi.Buffer, op mpi.Op) error
	Exscan(send, recv mpi.Buffer, op mpi.Op) error
}

// collectives are the models of all calls. Each makes one call and checks the received data.
var collectives = map[string]func(c collectiveCaller, rank, size int, t trial) error{
	"barrier": func(c collectiveCaller, _, _ int, _ trial) error { return c.Barrier() },
	"bcast": func(c collectiveCaller, rank, _ int, t trial) error {
		m := newMemory(vector(rank, 0, t.n), t.strided)
		if err := c.Bcast(m.buffer(), t.root); err != nil {
			return err
		}
		return m.compare("bcast", vector(t.root, 0, t.n))
	},
	"gather": func(c collectiveCaller, rank, size int, t trial) error {
		send := newMemory(vector(rank, 0, t.n), t.strided)
		if rank != t.root {
			return c.Gather(send.buffer(), mpi.Buffer{}, t.root)
		}
		want := blankElements(t.n * size)
		recv := newMemory(want, t.strided)
		b := send.buffer()
		if t.inPlace {
			copy(want[rank*t.n:], vector(rank, 0, t.n))
			recv, b = newMemory(want, t.strided), mpi.InPlace
		}
		if err := c.Gather(b, recv.buffer(), t.root); err != nil {
			return err
		}
		for r := range size {
			copy(want[r*t.n:], vector(r, 0, t.n))
		}
		return recv.compare("gather", want)
	},
	"gatherv": func(c collectiveCaller, rank, size int, t trial) error {
		counts, displs, total := layOutBlocks(size, t.n, 1)
		send := newMemory(vector(rank, 0, counts[rank]), t.strided)
		if rank != t.root {
			return c.Gatherv(send.buffer(), mpi.Buffer{}, nil, nil, t.root)
		}
		want, b := blankElements(total), send.buffer()
		if t.inPlace {
			copy(want[displs[rank]:], vector(rank, 0, counts[rank]))
			b = mpi.InPlace
		}
		recv := newMemory(want, t.strided)
		if err := c.Gatherv(b, recv.buffer(), counts, displs, t.root); err != nil {
			return err
		}
		for r := range size {
			copy(want[displs[r]:], vector(r, 0, counts[r]))
		}
		return recv.compare("gatherv", want)
	},
	"scatter": func(c collectiveCaller, rank, size int, t trial) error {
		recv := newMemory(blankElements(t.n), t.strided)
		if rank != t.root {
			if err := c.Scatter(mpi.Buffer{}, recv.buffer(), t.root); err != nil {
				return err
			}
			return recv.compare("scatter", vector(t.root, rank*t.n, t.n))
		}
		send := newMemory(vector(rank, 0, size*t.n), t.strided)
		if t.inPlace {
			return c.Scatter(send.buffer(), mpi.InPlace, t.root)
		}
		if err := c.Scatter(send.buffer(), recv.buffer(), t.root); err != nil {
			return err
		}
		return recv.compare("scatter at root", vector(t.root, rank*t.n, t.n))
	},
	"scatterv": func(c collectiveCaller, rank, size int, t trial) error {
		counts, displs, total := layOutBlocks(size, t.n, 2)
		recv := newMemory(blankElements(counts[rank]), t.strided)
		want := vector(t.root, displs[rank], counts[rank])
		if rank != t.root {
			if err := c.Scatterv(mpi.Buffer{}, nil, nil, recv.buffer(), t.root); err != nil {
				return err
			}
			return recv.compare("scatterv", want)
		}
		send := newMemory(vector(rank, 0, total), t.strided)
		if t.inPlace {
			return c.Scatterv(send.buffer(), counts, displs, mpi.InPlace, t.root)
		}
		if err := c.Scatterv(send.buffer(), counts, displs, recv.buffer(), t.root); err != nil {
			return err
		}
		return recv.compare("scatterv at root", want)
	},
	"allgather": func(c collectiveCaller, rank, size int, t trial) error {
		send := newMemory(vector(rank, 0, t.n), t.strided)
		want, b := blankElements(t.n*size), send.buffer()
		if t.inPlace {
			copy(want[rank*t.n:], vector(rank, 0, t.n))
			b = mpi.InPlace
		}
		recv := newMemory(want, t.strided)
		if err := c.Allgather(b, recv.buffer()); err != nil {
			return err
		}
		for r := range size {
			copy(want[r*t.n:], vector(r, 0, t.n))
		}
		return recv.compare("allgather", want)
	},
	"allgatherv": func(c collectiveCaller, rank, size int, t trial) error {
		counts, displs, total := layOutBlocks(size, t.n, 3)
		send := newMemory(vector(rank, 0, counts[rank]), t.strided)
		want, b := blankElements(total), send.buffer()
		if t.inPlace {
			copy(want[displs[rank]:], vector(rank, 0, counts[rank]))
			b = mpi.InPlace
		}
		recv := newMemory(want, t.strided)
		if err := c.Allgatherv(b, recv.buffer(), counts, displs); err != nil {
			return err
		}
		for r := range size {
			copy(want[displs[r]:], vector(r, 0, counts[r]))
		}
		return recv.compare("allgatherv", want)
	},
	"alltoall": func(c collectiveCaller, rank, size int, t trial) error {
		send := newMemory(vector(rank, 0, t.n*size), t.strided)
		recv := newMemory(blankElements(t.n*size), t.strided)
		b := send.buffer()
		if t.inPlace {
			recv, b = send, mpi.InPlace
		}
		if err := c.Alltoall(b, recv.buffer()); err != nil {
			return err
		}
		var want []int64
		for r := range size {
			want = append(want, vector(r, rank*t.n, t.n)...)
		}
		return recv.compare("alltoall", want)
	},
	"alltoallv": func(c collectiveCaller, rank, size int, t trial) error {
		// Rank r has (r+s)*n/4 elements for rank s, in an order of its own.
		counts := func(r int) (counts, displs []int, total int) {
			_, displs, _ = layOutBlocks(size, 0, uint64(r))
			counts = make([]int, size)
			for i := range size {
				s := (i + r) % size
				counts[s], displs[s] = (r+s)*t.n/4, total+1
				total += 1 + counts[s]
			}
			return counts, displs, total + 1
		}
		sendCounts, sendDispls, total := counts(rank)
		send := newMemory(vector(rank, 0, total), t.strided)
		recvCounts, recvDispls, want := sendCounts, sendDispls, vector(rank, 0, total)
		recv, b := send, mpi.InPlace
		if !t.inPlace {
			recvDispls, total = nil, 0
			for _, n := range recvCounts {
				total += n
			}
			want, b = blankElements(total), send.buffer()
			recv = newMemory(want, t.strided)
		}
		if err := c.Alltoallv(b, sendCounts, sendDispls, recv.buffer(), recvCounts, recvDispls); err != nil {
			return err
		}
		at := 0
		for r := range size {
			if recvDispls != nil {
				at = recvDispls[r]
			}
			_, from, _ := counts(r)
			copy(want[at:], vector(r, from[rank], recvCounts[r]))
			at += recvCounts[r]
		}
		return recv.compare("alltoallv", want)
	},
	"alltoallw": func(c collectiveCaller, rank, size int, t trial) error {
		var send, recv []*memory
		var out, in []mpi.Buffer
		for r := range size {
			n := t.n * (r + rank) / 4
			send = append(send, newMemory(vector(rank, r, n), t.strided))
			recv = append(recv, newMemory(blankElements(n), r%2 == 0))
			out, in = append(out, send[r].buffer()), append(in, recv[r].buffer())
		}
		if t.inPlace {
			recv, in, out = send, out, []mpi.Buffer{mpi.InPlace}
		}
		if err := c.Alltoallw(out, in); err != nil {
			return err
		}
		for r := range size {
			if err := recv[r].compare(fmt.Sprint("alltoallw from ", r), vector(r, rank, t.n*(r+rank)/4)); err != nil {
				return err
			}
		}
		return nil
	},
	"reduce": func(c collectiveCaller, rank, size int, t trial) error {
		send := newMemory(vector(rank, 0, t.n), t.strided)
		if rank != t.root {
			return c.Reduce(send.buffer(), mpi.Buffer{}, mpi.Sum, t.root)
		}
		recv, b := newMemory(blankElements(t.n), t.strided), send.buffer()
		if t.inPlace {
			recv, b = send, mpi.InPlace
		}
		if err := c.Reduce(b, recv.buffer(), mpi.Sum, t.root); err != nil {
			return err
		}
		return recv.compare("reduce", sum(0, size, 0, t.n))
	},
	"allreduce": func(c collectiveCaller, rank, size int, t trial) error {
		return vectors(rank, t, func(send, recv mpi.Buffer) error { return c.Allreduce(send, recv, mpi.Sum) }, sum(0, size, 0, t.n))
	},
	"scan": func(c collectiveCaller, rank, _ int, t trial) error {
		return vectors(rank, t, func(send, recv mpi.Buffer) error { return c.Scan(send, recv, mpi.Sum) }, sum(0, rank+1, 0, t.n))
	},
	"exscan": func(c collectiveCaller, rank, _ int, t trial) error {
		want := sum(0, rank, 0, t.n)
		if rank == 0 {
			if want = blankElements(t.n); t.inPlace {
				want = vector(0, 0, t.n)
			}
		}
		return vectors(rank, t, func(send, recv mpi.Buffer) error { return c.Exscan(send, recv, mpi.Sum) }, want)
	},
	"reduce-scatter": func(c collectiveCaller, rank, size int, t trial) error {
		counts, _, _ := layOutBlocks(size, t.n, 4)
		first, total := 0, 0
		for r, n := range counts {
			if r < rank {
				first += n
			}
			total += n
		}
		send := newMemory(vector(rank, 0, total), t.strided)
		recv, b := newMemory(blankElements(counts[rank]), t.strided), send.buffer()
		if t.inPlace {
			recv, b = send, mpi.InPlace
		}
		if err := c.ReduceScatter(b, recv.buffer(), counts, mpi.Sum); err != nil {
			return err
		}
		return recv.comparePrefix("reduce-scatter", sum(0, size, first, counts[rank]))
	},
	"reduce-scatter-block": func(c collectiveCaller, rank, size int, t trial) error {
		send := newMemory(vector(rank, 0, t.n*size), t.strided)
		recv, b := newMemory(blankElements(t.n), t.strided), send.buffer()
		if t.inPlace {
			recv, b = send, mpi.InPlace
		}
		if err := c.ReduceScatterBlock(b, recv.buffer(), mpi.Sum); err != nil {
			return err
		}
		return recv.comparePrefix("reduce-scatter-block", sum(0, size, rank*t.n, t.n))
	},
}

// vectors makes a call whose vectors have one length.
func vectors(rank int, t trial, call func(send, recv mpi.Buffer) error, want []int64) error {
	send := newMemory(vector(rank, 0, t.n), t.strided)
	recv, b := newMemory(blankElements(t.n), t.strided), send.buffer()
	if t.inPlace {
		recv, b = send, mpi.InPlace
	}
	if err := call(b, recv.buffer()); err != nil {
		return err
	}
	return recv.compare("result", want)
}

// comparePrefix compares the beginning of the memory.
func (m *memory) comparePrefix(what string, want []int64) error {
	for i, w := range want {
		if got := m.all[m.indexOf(i)]; got != w {
			return fmt.Errorf("%s: element %d is %d, not %d", what, i, got, w)
		}
	}
	return nil
}

// trials returns the parameters that all calls are tested with, on n ranks: without elements, with
// some, and with more than a packet holds.
func trials(n int) []trial {
	const long = 1100
	return []trial{
		{n: 0, root: n - 1},
		{n: 1, strided: true, inPlace: true, root: n / 2},
		{n: 7, inPlace: true, root: 0},
		{n: 7, strided: true, root: n - 1},
		{n: long, root: 1 % n},
		{n: long, strided: true, inPlace: true, root: n - 1},
	}
}

func TestCollectives(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		job(t, n, mpi.Options{Check: true, NoShared: true}, func(w mpi.World) error { return everyCollective(w.Comm, w.Rank(), n, trials(n)) })
	}
}

func everyCollective(c collectiveCaller, rank, size int, list []trial) error {
	for _, t := range list {
		for _, name := range everyName {
			if err := collectives[name](c, rank, size, t); err != nil {
				return fmt.Errorf("%s: %v: rank %d: %w", name, t, rank, err)
			}
		}
	}
	return nil
}

var everyName = []string{"barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
	"alltoallw", "reduce", "allreduce", "reduce-scatter", "reduce-scatter-block", "scan", "exscan"}
