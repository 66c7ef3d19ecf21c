package collective

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/topology"
)

// Op is a collective call with its arguments. It is made by the constructors below.
type Op struct {
	collective             coll.Collective
	root                   int
	send, recv             datatype.Buffer
	sendLayout, recvLayout blockLayout
	sends, recvs           []datatype.Buffer // of Alltoallw
	reduceOp               datatype.Op
	form                   form
	grid                   *topology.Grid // topology of a neighborhood call, or nil
	calledAs               string         // name in errors, if it is not that of the collective
	isFinalize             bool           // the barrier of Finalize, which no other call matches
	argErr                 error          // error of the arguments that the caller has found
	argsHash               uint16         // hash of the arguments of a call that makes a communicator, or 0
	inPlace                bool           // set by validateOp
}

// blockLayout lists the blocks of the ranks in a buffer, in elements.
type blockLayout struct{ counts, displs []int }

// form is the form of a collective call.
type form uint8

const (
	blocking form = iota
	nonblocking
	persistent
)

// opNames lists the names of the calls by form.
var opNames = func() (list [persistent + 1][len(shapes)]string) {
	for collective := range list[blocking] {
		name := coll.Collective(collective).String()
		list[blocking][collective], list[nonblocking][collective], list[persistent][collective] = name, "i"+name, "persistent "+name
	}
	return list
}()

// Name returns the name of the call in errors.
func (o *Op) Name() string {
	switch {
	case o.calledAs != "":
		return o.calledAs
	case o.grid != nil:
		return [...]string{"", "i", "persistent "}[o.form] + "neighbor-" + o.collective.String()
	}
	return opNames[o.form][o.collective]
}

// RootText returns the root for errors, "" if the call has none.
func (o *Op) RootText() string {
	if !shapes[o.collective].rooted {
		return ""
	}
	return fmt.Sprintf("with root %d", o.root)
}

// isAlltoall reports whether the call is an alltoall over all ranks, the only one that uses
// RDMA channels.
func (o *Op) isAlltoall() bool { return o.collective == coll.Alltoall && o.grid == nil }

// isQueued reports whether the call is in the communicator's queue of nonblocking alltoalls.
func (o *Op) isQueued() bool { return o.form == nonblocking && o.isAlltoall() }

// extent is the part of a buffer that a rank sends or receives for itself.
type extent uint8

const (
	noBuffer    extent = iota // no buffer
	wholeBuffer               // all of it
	equalBlocks               // one of the equal blocks
	layoutBlock               // its block in the blockLayout
)

// shapes describes the buffers of the collectives, except Alltoallw, which has more
// than two. The extents that a rank sends to itself and receives from itself have equal length.
var shapes = [...]struct {
	send, recv extent
	rooted     bool // the longer buffer is significant at the root only
	op         bool
}{
	coll.Barrier:            {},
	coll.Bcast:              {noBuffer, wholeBuffer, true, false},
	coll.Gather:             {wholeBuffer, equalBlocks, true, false},
	coll.Gatherv:            {wholeBuffer, layoutBlock, true, false},
	coll.Scatter:            {equalBlocks, wholeBuffer, true, false},
	coll.Scatterv:           {layoutBlock, wholeBuffer, true, false},
	coll.Allgather:          {wholeBuffer, equalBlocks, false, false},
	coll.Allgatherv:         {wholeBuffer, layoutBlock, false, false},
	coll.Alltoall:           {equalBlocks, equalBlocks, false, false},
	coll.Alltoallv:          {layoutBlock, layoutBlock, false, false},
	coll.Alltoallw:          {},
	coll.Reduce:             {wholeBuffer, wholeBuffer, true, true},
	coll.Allreduce:          {wholeBuffer, wholeBuffer, false, true},
	coll.ReduceScatter:      {layoutBlock, wholeBuffer, false, true},
	coll.ReduceScatterBlock: {equalBlocks, wholeBuffer, false, true},
	coll.Scan:               {wholeBuffer, wholeBuffer, false, true},
	coll.Exscan:             {wholeBuffer, wholeBuffer, false, true},
}

// The constructors of calls, in all forms: blocking, nonblocking and persistent. counts and displs
// have an entry for each rank, in elements. A buffer may be datatype.InPlace where MPI allows it.

// BarrierOp returns a Barrier.
func BarrierOp() Op { return Op{collective: coll.Barrier} }

// FinalizeOp returns the barrier of Finalize, which no other call matches.
func FinalizeOp() Op { return Op{collective: coll.Barrier, calledAs: "finalize", isFinalize: true} }

// RejectedOp returns a call whose arguments are invalid. It is executed with Options.Check only.
func RejectedOp(name string, err error) Op {
	return Op{collective: coll.Barrier, calledAs: name, argErr: err}
}

// BcastOp returns a Bcast: the root's buffer is copied to all ranks.
func BcastOp(b datatype.Buffer, root int) Op { return Op{collective: coll.Bcast, recv: b, root: root} }

// GatherOp returns a Gather of equal blocks at the root.
func GatherOp(send, recv datatype.Buffer, root int) Op {
	return Op{collective: coll.Gather, send: send, recv: recv, root: root}
}

// GathervOp returns a Gatherv of blocks of counts elements at displs of recv.
func GathervOp(send, recv datatype.Buffer, counts, displs []int, root int) Op {
	return Op{collective: coll.Gatherv, send: send, recv: recv, recvLayout: blockLayout{counts, displs}, root: root}
}

// ScatterOp returns a Scatter of the root's equal blocks.
func ScatterOp(send, recv datatype.Buffer, root int) Op {
	return Op{collective: coll.Scatter, send: send, recv: recv, root: root}
}

// ScattervOp returns a Scatterv of blocks of counts elements at displs of send.
func ScattervOp(send datatype.Buffer, counts, displs []int, recv datatype.Buffer, root int) Op {
	return Op{collective: coll.Scatterv, send: send, sendLayout: blockLayout{counts, displs}, recv: recv, root: root}
}

// AllgatherOp returns an Allgather of equal blocks.
func AllgatherOp(send, recv datatype.Buffer) Op {
	return Op{collective: coll.Allgather, send: send, recv: recv}
}

// AllgathervOp returns an Allgatherv of blocks of counts elements at displs of recv.
func AllgathervOp(send, recv datatype.Buffer, counts, displs []int) Op {
	return Op{collective: coll.Allgatherv, send: send, recv: recv, recvLayout: blockLayout{counts, displs}}
}

// AlltoallOp returns an Alltoall of equal blocks.
func AlltoallOp(send, recv datatype.Buffer) Op {
	return Op{collective: coll.Alltoall, send: send, recv: recv}
}

// AlltoallvOp returns an Alltoallv of blocks of different sizes.
func AlltoallvOp(send datatype.Buffer, sendCounts, sendDispls []int, recv datatype.Buffer, recvCounts, recvDispls []int) Op {
	return Op{collective: coll.Alltoallv, send: send, sendLayout: blockLayout{sendCounts, sendDispls}, recv: recv, recvLayout: blockLayout{recvCounts, recvDispls}}
}

// AlltoallwOp returns an Alltoallw with one buffer for each rank. In place, send is InPlace alone.
func AlltoallwOp(send, recv []datatype.Buffer) Op {
	return Op{collective: coll.Alltoallw, sends: send, recvs: recv}
}

// ReduceOp returns a Reduce of the elements of all ranks at the root.
func ReduceOp(send, recv datatype.Buffer, op datatype.Op, root int) Op {
	return Op{collective: coll.Reduce, send: send, recv: recv, reduceOp: op, root: root}
}

// AllreduceOp returns an Allreduce of the elements of all ranks.
func AllreduceOp(send, recv datatype.Buffer, op datatype.Op) Op {
	return Op{collective: coll.Allreduce, send: send, recv: recv, reduceOp: op}
}

// ReduceScatterOp returns a ReduceScatter, whose result is in adjacent blocks of counts elements.
func ReduceScatterOp(send, recv datatype.Buffer, counts []int, op datatype.Op) Op {
	return Op{collective: coll.ReduceScatter, send: send, sendLayout: blockLayout{counts: counts}, recv: recv, reduceOp: op}
}

// ReduceScatterBlockOp returns a ReduceScatter with equal blocks.
func ReduceScatterBlockOp(send, recv datatype.Buffer, op datatype.Op) Op {
	return Op{collective: coll.ReduceScatterBlock, send: send, recv: recv, reduceOp: op}
}

// ScanOp returns a Scan of the elements of the ranks up to each rank.
func ScanOp(send, recv datatype.Buffer, op datatype.Op) Op {
	return Op{collective: coll.Scan, send: send, recv: recv, reduceOp: op}
}

// ExscanOp returns a Scan without the rank's own elements.
func ExscanOp(send, recv datatype.Buffer, op datatype.Op) Op {
	return Op{collective: coll.Exscan, send: send, recv: recv, reduceOp: op}
}
