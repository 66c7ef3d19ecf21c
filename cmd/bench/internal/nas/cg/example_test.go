package cg

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
			zeta := report.Checks[0]
			fmt.Printf("%s %v: zeta %.10f, published %.10f\n", report.Benchmark, report.Class, zeta.Got, zeta.Want)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// CG S: zeta 8.5971775079, published 8.5971775079
	// <nil>
}
