package ep

import (
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

func Example() {
	err := mpitest.Run(2, func(w mpi.World) error {
		report, err := Run(w.Comm, nas.S)
		if err == nil && w.Rank() == 0 {
			fmt.Println(report.Benchmark, report.Class, report.Size, report.Verified())
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// EP S 33554432 true
	// <nil>
}
