// Histogram counts random numbers in bins. Each rank owns some of the bins:
//
//	go run ./cmd/softrnic mpirun -n 4 ./examples/mpi/histogram
//
// Each rank first counts its own numbers in all bins and then accumulates the counts in the
// windows of the owners by one-sided communication. Rank 0 reads the result.
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
	all, err := sumCounts(c, counts)
	if err != nil || c.Rank() != 0 {
		return err
	}
	return drawBars(all, out)
}

// ownBins returns the bins that a rank owns.
func ownBins(counts []int64, rank, ranks int) []int64 {
	return counts[rank*len(counts)/ranks : (rank+1)*len(counts)/ranks]
}

// sumCounts accumulates the counts of all ranks in windows of the bins and returns the sums at
// rank 0, nil at the other ranks. Accumulate is atomic, so the order of the origins does not
// matter.
func sumCounts(c *mpi.Comm, counts []int64) (all []int64, err error) {
	bins, _, err := mpi.WinAllocate[int64](c, len(ownBins(counts, c.Rank(), c.Size())))
	if err != nil {
		return nil, err
	}
	if err := bins.Fence(); err != nil {
		return nil, err
	}
	for rank := range c.Size() {
		if err := bins.Accumulate(mpi.Of(ownBins(counts, rank, c.Size())), rank, mpi.At(0), mpi.Sum); err != nil {
			return nil, err
		}
	}
	if err := bins.Fence(); err != nil { // all ranks have accumulated
		return nil, err
	}
	if c.Rank() == 0 {
		all = make([]int64, len(counts))
		for rank := range c.Size() {
			if err := bins.Get(mpi.Of(ownBins(all, rank, c.Size())), rank, mpi.At(0)); err != nil {
				return nil, err
			}
		}
	}
	if err := bins.Fence(mpi.NoSucceed); err != nil { // rank 0 has read
		return nil, err
	}
	return all, bins.Free()
}

// drawBars draws a bar for each bin.
func drawBars(counts []int64, out io.Writer) error {
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
		log.Fatal(err) // mpirun terminates the other ranks
	}
}
