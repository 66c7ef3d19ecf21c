package osu_test

import (
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/osu"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

func Example() {
	err := mpitest.Run(2, func(w mpi.World) error {
		t, err := osu.Find("osu_bw")
		if err != nil {
			return err
		}
		o := osu.Defaults(t)
		o.Min, o.Max, o.Small.Iterations, o.Validate = 1024, 4096, 2, true
		rows, err := osu.Run(w.Comm, t, o)
		for _, r := range rows { // of rank 0
			fmt.Println(r.Size, "bytes:", r.Errors, "errors,", r.Bandwidth > 0)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// 1024 bytes: 0 errors, true
	// 2048 bytes: 0 errors, true
	// 4096 bytes: 0 errors, true
	// <nil>
}
