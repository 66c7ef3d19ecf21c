// Samplesort sorts numbers distributed over the ranks: each rank sorts its own numbers, the
// ranks choose splitters from samples of all, and each number moves to the rank of its range:
//
//	go run ./cmd/softrnic mpirun -n 4 ./examples/mpi/samplesort -numbers 1000000
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func main() {
	n := flag.Uint("numbers", 1_000_000, "`numbers` of each rank")
	seed := flag.Uint64("seed", 1, "of the random numbers")
	flag.Parse()
	w, err := mpi.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, mpi.Options{})
	check(err)
	check(run(w.Comm, int(*n), *seed, os.Stdout))
	check(w.Finalize())
}

func run(c *mpi.Comm, n int, seed uint64, out io.Writer) error {
	random := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
	x := make([]float64, n)
	for i := range x {
		x[i] = random.NormFloat64()
	}
	start := time.Now()
	sorted, err := samplesort(c, x)
	if err != nil {
		return err
	}
	took := time.Since(start)
	least, most := 0, 0
	for _, r := range []struct {
		to *int
		op mpi.Op
	}{{&least, mpi.Min}, {&most, mpi.Max}} {
		if err := c.Reduce(mpi.Value(new(len(sorted))), mpi.Value(r.to), r.op, 0); err != nil {
			return err
		}
	}
	if c.Rank() == 0 {
		_, err = fmt.Fprintf(out, "%d numbers in order after %v; ranks have %d to %d of them\n", n*c.Size(), took.Round(time.Millisecond), least, most)
	}
	return err
}

// samplesort returns this rank's part of the sorted numbers: none is less than a number of a
// lower rank. It also sorts x.
func samplesort(c *mpi.Comm, x []float64) ([]float64, error) {
	slices.Sort(x)
	limits, err := chooseSplitters(c, x)
	if err != nil {
		return nil, err
	}
	// Blocks of x, one for each rank.
	out, outAt := make([]int, c.Size()), make([]int, c.Size()+1)
	for rank := range c.Size() - 1 {
		outAt[rank+1], _ = slices.BinarySearch(x, limits[rank])
	}
	outAt[c.Size()] = len(x)
	for rank := range out {
		out[rank] = outAt[rank+1] - outAt[rank]
	}
	in, inAt := make([]int, c.Size()), make([]int, c.Size())
	if err := c.Alltoall(mpi.Of(out), mpi.Of(in)); err != nil {
		return nil, err
	}
	n := 0
	for rank := range in {
		inAt[rank] = n
		n += in[rank]
	}
	ours := make([]float64, n)
	if err := c.Alltoallv(mpi.Of(x), out, outAt[:c.Size()], mpi.Of(ours), in, inAt); err != nil {
		return nil, err
	}
	slices.Sort(ours)
	return ours, nil
}

// oversampling is the number of samples of each rank divided by the number of ranks. More
// samples make the parts more equal.
const oversampling = 16

// chooseSplitters returns the limits between the ranges of the ranks, one less than there are
// ranks. A rank without numbers has no samples.
func chooseSplitters(c *mpi.Comm, x []float64) ([]float64, error) {
	n := min(oversampling*c.Size(), len(x))
	samples := make([]float64, n)
	for i := range samples {
		samples[i] = x[(2*i+1)*len(x)/(2*n)]
	}
	counts, displs, all := make([]int, c.Size()), make([]int, c.Size()), 0
	if err := c.Allgather(mpi.Value(&n), mpi.Of(counts)); err != nil {
		return nil, err
	}
	for rank := range counts {
		displs[rank] = all
		all += counts[rank]
	}
	everybodys := make([]float64, all)
	if err := c.Allgatherv(mpi.Of(samples), mpi.Of(everybodys), counts, displs); err != nil {
		return nil, err
	}
	slices.Sort(everybodys)
	limits := make([]float64, c.Size()-1)
	for i := range limits {
		if all > 0 {
			limits[i] = everybodys[(i+1)*all/c.Size()]
		}
	}
	return limits, nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err) // mpirun terminates the other ranks
	}
}
