package imb_test

import (
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/imb"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

func Example() {
	err := mpitest.Run(2, func(w mpi.World) error {
		list, err := imb.Find("PingPong")
		if err != nil {
			return err
		}
		o := imb.Defaults()
		o.Sizes, o.Repetitions = []int{0, 1024}, 10
		rows, err := imb.Run(w.Comm, list, o)
		for _, r := range rows { // rows of rank 0
			fmt.Println(r.Benchmark, r.Size, r.Repetitions, r.Max > 0)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// PingPong 0 10 true
	// PingPong 1024 10 true
	// <nil>
}
