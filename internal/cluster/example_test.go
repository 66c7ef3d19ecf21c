package cluster_test

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/internal/cluster"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi"
)

// A barrier of 64 ranks takes six times the latency of the network.
func Example() {
	c := cluster.New(cluster.Options{Seed: 1, Hosts: 64, Costs: cluster.Costs{Latency: 2 * time.Microsecond}})
	err := c.Run(func(h *cluster.Host) error {
		w, err := mpi.Init(h.OpenDevice, mpi.Options{Manager: h.Manager(), Net: mpi.UD})
		if err != nil {
			return err
		}
		if err := w.Barrier(); err != nil { // finds the addresses of the ranks
			return err
		}
		began := vtime.Now()
		if err := w.Barrier(); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(vtime.Since(began))
		}
		return w.Finalize()
	})
	fmt.Println(err)
	// Output:
	// 12µs
	// <nil>
}
