package collective_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/engine"
)

// The calls of a communicator of one rank: blocking, nonblocking, and with an invalid argument.
func Example() {
	e, err := engine.New(0, 1, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	world := comm.Comm{Usable: func() error { return nil }}
	world.Init(e, 0, "world", nil, 0, 1)
	job := collective.NewJob(e, nil, collective.Options{})
	c := job.NewComm(&world, collective.Config{Processors: 1})

	got := make([]int64, 1)
	sum := collective.AllreduceOp(datatype.Of([]int64{3}), datatype.Of(got), datatype.Sum)
	fmt.Println(c.Run(&sum), got)

	barrier := collective.BarrierOp()
	b, err := c.Start(&barrier)
	fmt.Println(barrier.Name(), err, b.Wait(context.Background()), b.Err())

	bcast := collective.BcastOp(datatype.Of(got), 7)
	fmt.Println(bcast.Name(), bcast.RootText()+":", c.Run(&bcast))
	// Output:
	// <nil> [3]
	// ibarrier <nil> <nil> <nil>
	// bcast with root 7: mpi: invalid root: 7, want [0, 1)
}
