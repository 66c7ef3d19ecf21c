package pt2pt_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/pt2pt"
)

// A rank sends a message to itself and receives it, and sends one with an invalid argument.
func Example() {
	e, err := engine.New(0, 1, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	self := comm.Comm{
		Usable: func() error { return nil },
		Fail:   func(op, args string, err error) error { return fmt.Errorf("%s %s: %w", op, args, err) },
	}
	self.Init(e, comm.SelfID, "self", nil, 0, 1)
	c := pt2pt.NewJob(false).NewComm(&self)

	got := make([]int64, 2)
	in, err := c.Irecv(datatype.Of(got), match.Any, 7)
	fmt.Println(err, c.Send(datatype.Of([]int64{3, 4}), 0, 7, pt2pt.Standard))
	status, err := in.Wait()
	fmt.Println(status.Source, status.Tag, status.Bytes, err, got)

	fmt.Println(c.Send(datatype.Of(got), 1, 7, pt2pt.Standard))
	// Output:
	// <nil> <nil>
	// 0 7 16 <nil> [3 4]
	// send to 1, tag 7: mpi: invalid rank: 1, want [0, 1)
}
