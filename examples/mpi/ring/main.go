// Ring passes a sum around all ranks; each adds its rank:
//
//	go run ./cmd/softrnic mpirun -n 4 ./examples/mpi/ring
package main

import (
	"fmt"
	"io"
	"log"
	"os"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func main() {
	w, err := mpi.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, mpi.Options{})
	check(err)
	check(ring(w.Comm, os.Stdout))
	check(w.Finalize())
}

// ring returns when the sum is back at rank 0.
func ring(c *mpi.Comm, out io.Writer) error {
	rank, size := c.Rank(), c.Size()
	next, last := (rank+1)%size, (rank+size-1)%size
	sum := 0
	if rank > 0 {
		if _, err := c.Recv(mpi.Value(&sum), last, 0); err != nil {
			return err
		}
		sum += rank
		return c.Send(mpi.Value(&sum), next, 0)
	}
	if _, err := c.Sendrecv(mpi.Value(new(0)), next, 0, mpi.Value(&sum), last, 0); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "The sum of %d ranks is %d.\n", size, sum)
	return err
}

func check(err error) {
	if err != nil {
		log.Fatal(err) // mpirun terminates the other ranks
	}
}
