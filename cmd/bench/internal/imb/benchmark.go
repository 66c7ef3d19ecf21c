package imb

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/softrnic/softrnic/internal/spelling"
	"github.com/softrnic/softrnic/mpi"
)

// A Benchmark is one of the Intel MPI Benchmarks.
type Benchmark struct {
	Name string

	class    class
	twoRanks bool    // runs on two ranks only
	even     bool    // runs on an even number of ranks
	reduces  bool    // reduces floating-point numbers
	halfTime bool    // the result is half the time of a repetition, which has two messages
	volume   float64 // bytes that a rank moves in a repetition, as a multiple of the size

	sendSize, recvSize func(size, ranks int) int                     // bytes that a rank sends and receives
	execute            func(k *kernel, n int) (time.Duration, error) // runs n repetitions
}

// A class is the output format of a benchmark.
type class uint8

const (
	single     class = iota // transfer: time and bandwidth
	parallel                // transfer: minimum, maximum and average time, and bandwidth
	rate                    // windows: bandwidth and message rate
	collective              // minimum, maximum and average time
	sync                    // the times of collective, without sizes
)

func sizeOnce(size, _ int) int        { return size }
func sizeZero(int, int) int           { return 0 }
func sizeTwice(size, _ int) int       { return 2 * size }
func sizePerRank(size, ranks int) int { return size * ranks }

var benchmarks = []Benchmark{
	{Name: "PingPong", class: single, twoRanks: true, halfTime: true, volume: 1, sendSize: sizeOnce, recvSize: sizeOnce, execute: pingPong(false)},
	{Name: "PingPongSpecificSource", class: single, twoRanks: true, halfTime: true, volume: 1, sendSize: sizeOnce, recvSize: sizeOnce, execute: pingPong(false)},
	{Name: "PingPongAnySource", class: single, twoRanks: true, halfTime: true, volume: 1, sendSize: sizeOnce, recvSize: sizeOnce, execute: pingPong(true)},
	{Name: "PingPing", class: single, twoRanks: true, volume: 1, sendSize: sizeOnce, recvSize: sizeOnce, execute: pingPing(false)},
	{Name: "PingPingSpecificSource", class: single, twoRanks: true, volume: 1, sendSize: sizeOnce, recvSize: sizeOnce, execute: pingPing(false)},
	{Name: "PingPingAnySource", class: single, twoRanks: true, volume: 1, sendSize: sizeOnce, recvSize: sizeOnce, execute: pingPing(true)},
	{Name: "Sendrecv", class: parallel, volume: 2, sendSize: sizeOnce, recvSize: sizeOnce, execute: timeSendrecv},
	{Name: "Exchange", class: parallel, volume: 4, sendSize: sizeTwice, recvSize: sizeOnce, execute: timeExchange},
	{Name: "Bcast", class: collective, sendSize: sizeOnce, recvSize: sizeOnce, execute: timeEach(func(k *kernel) error {
		if k.rank == k.root { // keeps the sent data
			return k.c.Bcast(k.send, k.root)
		}
		return k.c.Bcast(k.recv, k.root)
	})},
	{Name: "Allgather", class: collective, sendSize: sizeOnce, recvSize: sizePerRank, execute: timeEach(func(k *kernel) error { return k.c.Allgather(k.send, k.recv) })},
	{Name: "Allgatherv", class: collective, sendSize: sizeOnce, recvSize: sizePerRank, execute: timeEach(func(k *kernel) error { return k.c.Allgatherv(k.send, k.recv, k.counts, k.displs) })},
	{Name: "Gather", class: collective, sendSize: sizeOnce, recvSize: sizePerRank, execute: timeEach(func(k *kernel) error { return k.c.Gather(k.send, k.recv, k.root) })},
	{Name: "Gatherv", class: collective, sendSize: sizeOnce, recvSize: sizePerRank, execute: timeEach(func(k *kernel) error { return k.c.Gatherv(k.send, k.recv, k.counts, k.displs, k.root) })},
	{Name: "Scatter", class: collective, sendSize: sizePerRank, recvSize: sizeOnce, execute: timeEach(func(k *kernel) error { return k.c.Scatter(k.send, k.recv, k.root) })},
	{Name: "Scatterv", class: collective, sendSize: sizePerRank, recvSize: sizeOnce, execute: timeEach(func(k *kernel) error { return k.c.Scatterv(k.send, k.counts, k.displs, k.recv, k.root) })},
	{Name: "Alltoall", class: collective, sendSize: sizePerRank, recvSize: sizePerRank, execute: timeEach(func(k *kernel) error { return k.c.Alltoall(k.send, k.recv) })},
	{Name: "Alltoallv", class: collective, sendSize: sizePerRank, recvSize: sizePerRank, execute: timeEach(func(k *kernel) error { return k.c.Alltoallv(k.send, k.counts, k.displs, k.recv, k.counts, k.displs) })},
	{Name: "Reduce", class: collective, reduces: true, sendSize: sizeOnce, recvSize: sizeOnce, execute: timeEach(func(k *kernel) error { return k.c.Reduce(k.send, k.recv, mpi.Sum, k.root) })},
	{Name: "Reduce_scatter", class: collective, reduces: true, sendSize: sizeOnce, recvSize: sizeOnce, execute: timeEach(func(k *kernel) error { return k.c.ReduceScatter(k.send, k.recv, k.recvCounts, mpi.Sum) })},
	{Name: "Reduce_scatter_block", class: collective, reduces: true, sendSize: sizePerRank, recvSize: sizeOnce, execute: timeEach(func(k *kernel) error { return k.c.ReduceScatterBlock(k.send, k.recv, mpi.Sum) })},
	{Name: "Reduce_local", class: collective, reduces: true, sendSize: sizeOnce, recvSize: sizeOnce, execute: timeEach((*kernel).reduceLocal)},
	{Name: "Allreduce", class: collective, reduces: true, sendSize: sizeOnce, recvSize: sizeOnce, execute: timeEach(func(k *kernel) error { return k.c.Allreduce(k.send, k.recv, mpi.Sum) })},
	{Name: "Barrier", class: sync, sendSize: sizeZero, recvSize: sizeZero, execute: timeBarriers},
	{Name: "Uniband", class: rate, even: true, volume: 1, sendSize: sizeOnce, recvSize: sizeOnce, execute: timeWindows(false)},
	{Name: "Biband", class: rate, even: true, volume: 2, sendSize: sizeOnce, recvSize: sizeOnce, execute: timeWindows(true)},
}

// Benchmarks returns all benchmarks.
func Benchmarks() []Benchmark { return append([]Benchmark(nil), benchmarks...) }

// Errors wrapped by the errors of Find and Run.
var (
	ErrBenchmark = errors.New("imb: unknown benchmark")
	ErrRanks     = errors.New("imb: invalid number of ranks")
	ErrOptions   = errors.New("imb: invalid options")
)

// Find returns the benchmarks with the given names, ignoring case, or all benchmarks without a
// name.
func Find(names ...string) (list []Benchmark, err error) {
	if len(names) == 0 {
		return Benchmarks(), nil
	}
	for _, name := range names {
		b, err := findBenchmark(name)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

func findBenchmark(name string) (Benchmark, error) {
	var known []string
	for _, b := range benchmarks {
		if strings.EqualFold(b.Name, name) {
			return b, nil
		}
		known = append(known, b.Name)
	}
	return Benchmark{}, fmt.Errorf("%w %q%s; known benchmarks: %s", ErrBenchmark, name, spelling.Hint(name, known...), strings.Join(known, ", "))
}

// groupSizes returns the numbers of ranks on which the benchmark runs, from least to ranks.
func (b Benchmark) groupSizes(least, ranks int) (list []int, err error) {
	switch {
	case ranks < 2 && (b.twoRanks || b.even):
		return nil, fmt.Errorf("%w: %s: %d ranks, want at least 2", ErrRanks, b.Name, ranks)
	case b.twoRanks:
		return []int{2}, nil
	}
	for n := min(least, ranks); n < ranks; n *= 2 {
		list = append(list, n)
	}
	list = append(list, ranks)
	if b.even {
		even := list[:0]
		for _, n := range list {
			if n -= n % 2; n > 0 && (len(even) == 0 || n > even[len(even)-1]) {
				even = append(even, n)
			}
		}
		list = even
	}
	return list, nil
}
