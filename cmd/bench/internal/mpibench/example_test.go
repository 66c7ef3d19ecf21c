package mpibench_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
)

// A job of two processes for each target. The parent program must call proc.ServeIfWorker
// first.
func Example() {
	ctx := context.Background()
	for _, over := range mpibench.Transports() {
		job, err := mpibench.Open(ctx, mpibench.Config{Transport: over, Ranks: 2})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer job.Close()
		us, err := job.Latency(8, 10)(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		report, err := job.NAS(ctx, "is", nas.S)
		fmt.Println(over, us > 0, report.Verified(), err)
	}
	// Output:
	// mpi-fast true true <nil>
	// mpi-rdma true true <nil>
	// mpi-shared true true <nil>
	// mpi-ud true true <nil>
	// mpi-hybrid true true <nil>
	// mpi-tcp true true <nil>
}
