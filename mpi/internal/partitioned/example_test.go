package partitioned_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/partitioned"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// newSelf returns the partitioned messages of a rank alone, and its communicator.
func newSelf() (*partitioned.Table, *comm.Comm, error) {
	e, err := engine.New(0, 1, nil)
	if err != nil {
		return nil, nil, err
	}
	t := partitioned.NewTable(e)
	e.Do(func(core *protocol.Core) { core.Handler = t.HandlePacket })
	self := &comm.Comm{}
	self.Init(e, comm.SelfID, "self", nil, 0, 1)
	return t, self, nil
}

// A rank sends itself four elements in four partitions, and receives them in two.
func Example() {
	t, self, err := newSelf()
	if err != nil {
		fmt.Println(err)
		return
	}
	in := make([]int64, 4)
	recv, err := t.NewRecv(self, datatype.Of(in), 2, 0, 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	send, err := t.NewSend(self, datatype.Of([]int64{1, 2, 3, 4}), 4, 0, 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(recv.Start(), send.Start(), send.Pready(2, 4))
	for p := range 2 {
		fmt.Println(recv.Parrived(p))
	}
	fmt.Println(send.Pready(0, 1), recv.Ready(), recv.DescribeWait().Why)
	fmt.Println(send.Pready(0, 2))
	fmt.Println(send.Pready(1, 2), send.Finish(), recv.Finish(), in)
	// Output:
	// <nil> <nil> <nil>
	// false <nil>
	// true <nil>
	// <nil> false 1 of 4 partitions of the sender missing
	// mpi: invalid partition: partition 0 is ready already
	// <nil> <nil> <nil> [1 2 3 4]
}
