// Pi computes pi as the area below 4/(1+x^2) from 0 to 1, in strips distributed over the
// ranks:
//
//	go run ./cmd/softrnic mpirun -n 4 ./examples/mpi/pi -strips 100000000
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"time"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func main() {
	strips := flag.Uint("strips", 100_000_000, "`number` of strips")
	flag.Parse()
	w, err := mpi.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, mpi.Options{})
	check(err)
	check(run(w.Comm, max(1, int(*strips)), os.Stdout))
	check(w.Finalize())
}

func run(c *mpi.Comm, strips int, out io.Writer) error {
	if err := c.Barrier(); err != nil {
		return err
	}
	start := time.Now()
	part, pi := sumStrips(strips, c.Rank(), c.Size()), 0.0
	if err := c.Reduce(mpi.Value(&part), mpi.Value(&pi), mpi.Sum, 0); err != nil || c.Rank() != 0 {
		return err
	}
	_, err := fmt.Fprintf(out, "pi is %.12f, wrong by %.1e; %d ranks took %v\n", pi, math.Abs(pi-math.Pi), c.Size(), time.Since(start))
	return err
}

// sumStrips returns the area of every n-th strip, beginning with first.
func sumStrips(strips, first, n int) (sum float64) {
	width := 1 / float64(strips)
	for i := first; i < strips; i += n {
		x := (float64(i) + 0.5) * width
		sum += 4 / (1 + x*x)
	}
	return sum * width
}

func check(err error) {
	if err != nil {
		log.Fatal(err) // mpirun terminates the other ranks
	}
}
