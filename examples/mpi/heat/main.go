// Heat solves the heat equation in two dimensions on a square plate with a hot upper edge, on
// a Cartesian grid of ranks. Each rank has a rectangle of the plate with a halo of its
// neighbors' points (plate.go). Rank 0 computes the same alone and compares the results:
//
//	go run ./cmd/softrnic mpirun -n 4 ./examples/mpi/heat -points 500 -steps 1000
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func main() {
	points := flag.Uint("points", 500, "points along each edge")
	steps := flag.Uint("steps", 1000, "steps in time")
	flag.Parse()
	w, err := mpi.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, mpi.Options{})
	check(err)
	check(run(w, int(*points), int(*steps), os.Stdout))
	check(w.Finalize())
}

func run(w mpi.World, points, steps int, out io.Writer) error {
	start := time.Now()
	together, err := solve(w.Comm, points, steps)
	if err != nil || w.Rank() != 0 {
		return err
	}
	took := time.Since(start)
	start = time.Now()
	alone, err := solve(w.Self, points, steps)
	if err != nil {
		return err
	}
	mean := 0.0
	for i, t := range together {
		if t != alone[i] {
			return fmt.Errorf("row %d, column %d: %v alone, %v on %d ranks", i/points, i%points, alone[i], t, w.Size())
		}
		mean += t / float64(len(together))
	}
	_, err = fmt.Fprintf(out, "%.3f degrees on average after %d steps; %d ranks took %v, one takes %v for the same\n",
		mean, steps, w.Size(), took.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	return err
}

// solve computes the plate and returns it at rank 0, nil at the other ranks.
func solve(c *mpi.Comm, points, steps int) ([]float64, error) {
	p, err := newPlate(c, points)
	if err != nil {
		return nil, err
	}
	for range steps {
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	return p.gatherPlate()
}

func check(err error) {
	if err != nil {
		log.Fatal(err) // mpirun terminates the other ranks
	}
}
