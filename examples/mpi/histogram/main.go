// Histogram counts random numbers by how large they are. The bins are dealt out to
// the ranks, so that each is counted at one place:
//
//	go run ./cmd/softrnic mpirun -n 4 ./examples/mpi/histogram
//
// Each rank counts its numbers for all bins first, and then sends every rank what
// is that one's.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func main() {
	n := flag.Uint("numbers", 1_000_000, "`numbers` of each rank")
	bins := flag.Uint("bins", 24, "`number` of bins")
	seed := flag.Uint64("seed", 1, "of the random numbers")
	flag.Parse()
	w, err := mpi.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, mpi.Options{})
	check(err)
	check(run(w.Comm, int(*n), int(*bins), *seed, os.Stdout))
	check(w.Finalize())
}

func run(c *mpi.Comm, n, bins int, seed uint64, out io.Writer) error {
	counts := make([]int64, bins)
	random := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
	for range n {
		x := (random.NormFloat64() + 3) / 6 // three standard deviations to each side
		if i := int(x * float64(bins)); x >= 0 && i < bins {
			counts[i]++
		}
	}
	ours, err := collect(c, counts)
	if err != nil {
		return err
	}
	all, err := gather(c, ours, bins)
	if err != nil || c.Rank() != 0 {
		return err
	}
	return draw(all, out)
}

// cut is the first bin of a rank; that of the rank behind the last is the end.
func cut(c *mpi.Comm, bins, rank int) int { return rank * bins / c.Size() }

// collect sends every rank the counts of its bins, and returns those of ours, of
// all ranks. Who comes first is added first.
func collect(c *mpi.Comm, counts []int64) ([]int64, error) {
	part := func(rank int) []int64 { return counts[cut(c, len(counts), rank):cut(c, len(counts), rank+1)] }
	var sends []*mpi.Request
	for rank := range c.Size() {
		if rank == c.Rank() {
			continue
		}
		r, err := c.Isend(mpi.Of(part(rank)), rank, 0)
		if err != nil {
			return nil, err
		}
		sends = append(sends, r)
	}
	ours := part(c.Rank())
	theirs := make([]int64, len(ours))
	for range c.Size() - 1 {
		if _, err := c.Recv(mpi.Of(theirs), mpi.AnySource, 0); err != nil {
			return nil, err
		}
		for i, n := range theirs {
			ours[i] += n
		}
	}
	_, err := mpi.WaitAll(sends...)
	return ours, err
}

// gather puts all bins together at rank 0.
func gather(c *mpi.Comm, ours []int64, bins int) ([]int64, error) {
	all, counts, displs := make([]int64, bins), make([]int, c.Size()), make([]int, c.Size())
	for rank := range counts {
		displs[rank] = cut(c, bins, rank)
		counts[rank] = cut(c, bins, rank+1) - displs[rank]
	}
	return all, c.Gatherv(mpi.Of(ours), mpi.Of(all), counts, displs, 0)
}

// draw draws a bar for each bin.
func draw(counts []int64, out io.Writer) error {
	most := int64(1)
	for _, n := range counts {
		most = max(most, n)
	}
	for i, n := range counts {
		from := 6*float64(i)/float64(len(counts)) - 3
		if _, err := fmt.Fprintf(out, "%5.2f %10d %s\n", from, n, strings.Repeat("#", int(50*n/most))); err != nil {
			return err
		}
	}
	return nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err) // mpirun ends the others
	}
}
