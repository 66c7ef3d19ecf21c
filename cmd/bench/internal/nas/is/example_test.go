package is

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
			for _, c := range report.Checks {
				fmt.Println(c.Name, c.Got, c.Want)
			}
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// ranks of test keys 50 50
	// keys in order 65536 65536
	// <nil>
}
