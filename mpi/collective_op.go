package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// collectiveOp is a collective call with its arguments.
type collectiveOp struct {
	collective             coll.Collective
	root                   int
	send, recv             datatype.Buffer
	sendLayout, recvLayout blockLayout
	sends, recvs           []Buffer // of Alltoallw
	reduceOp               datatype.Op
	form                   form
	grid                   *grid  // topology of a neighborhood call, or nil
	calledAs               string // name in errors, if it is not that of the collective
	isFinalize             bool   // the barrier of Finalize, which no other call matches
	argErr                 error  // error of the arguments that the caller has found
	argsHash               uint16 // hash of the arguments of a call that makes a communicator, or 0
	inPlace                bool   // set by validate
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

// collectiveNames lists the names of the calls by form.
var collectiveNames = func() (list [persistent + 1][len(collectiveShapes)]string) {
	for collective := range list[blocking] {
		name := coll.Collective(collective).String()
		list[blocking][collective], list[nonblocking][collective], list[persistent][collective] = name, "i"+name, "persistent "+name
	}
	return list
}()

// Name returns the name of the call in errors.
func (o *collectiveOp) Name() string {
	switch {
	case o.calledAs != "":
		return o.calledAs
	case o.grid != nil:
		return [...]string{"", "i", "persistent "}[o.form] + "neighbor-" + o.collective.String()
	}
	return collectiveNames[o.form][o.collective]
}

// Root returns the root for errors, "" if the call has none.
func (o *collectiveOp) Root() string {
	if !collectiveShapes[o.collective].rooted {
		return ""
	}
	return fmt.Sprintf("with root %d", o.root)
}

// extent is the part of a buffer that a rank sends or receives for itself.
type extent uint8

const (
	noBuffer    extent = iota // no buffer
	wholeBuffer               // all of it
	equalBlocks               // one of the equal blocks
	layoutBlock               // its block in the blockLayout
)

// collectiveShapes describes the buffers of the collectives, except Alltoallw, which has more
// than two. The extents that a rank sends to itself and receives from itself have equal length.
var collectiveShapes = [...]struct {
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

// Constructors of collective calls, for all forms: blocking, nonblocking and persistent.

func barrierOp() collectiveOp {
	return collectiveOp{collective: coll.Barrier}
}

// finalizeOp returns the barrier of Finalize, which no other call matches.
func finalizeOp() collectiveOp {
	return collectiveOp{collective: coll.Barrier, calledAs: "finalize", isFinalize: true}
}

// rejectedOp returns a call whose arguments are invalid. Only with Options.Check it is executed.
func rejectedOp(name string, err error) collectiveOp {
	return collectiveOp{collective: coll.Barrier, calledAs: name, argErr: err}
}

func bcastOp(b Buffer, root int) collectiveOp {
	return collectiveOp{collective: coll.Bcast, recv: b.data, root: root}
}

func gatherOp(send, recv Buffer, root int) collectiveOp {
	return collectiveOp{collective: coll.Gather, send: send.data, recv: recv.data, root: root}
}

func gathervOp(send, recv Buffer, counts, displs []int, root int) collectiveOp {
	return collectiveOp{collective: coll.Gatherv, send: send.data, recv: recv.data, recvLayout: blockLayout{counts, displs}, root: root}
}

func scatterOp(send, recv Buffer, root int) collectiveOp {
	return collectiveOp{collective: coll.Scatter, send: send.data, recv: recv.data, root: root}
}

func scattervOp(send Buffer, counts, displs []int, recv Buffer, root int) collectiveOp {
	return collectiveOp{collective: coll.Scatterv, send: send.data, sendLayout: blockLayout{counts, displs}, recv: recv.data, root: root}
}

func allgatherOp(send, recv Buffer) collectiveOp {
	return collectiveOp{collective: coll.Allgather, send: send.data, recv: recv.data}
}

func allgathervOp(send, recv Buffer, counts, displs []int) collectiveOp {
	return collectiveOp{collective: coll.Allgatherv, send: send.data, recv: recv.data, recvLayout: blockLayout{counts, displs}}
}

func alltoallOp(send, recv Buffer) collectiveOp {
	return collectiveOp{collective: coll.Alltoall, send: send.data, recv: recv.data}
}

func alltoallvOp(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) collectiveOp {
	return collectiveOp{collective: coll.Alltoallv, send: send.data, sendLayout: blockLayout{sendCounts, sendDispls}, recv: recv.data, recvLayout: blockLayout{recvCounts, recvDispls}}
}

func alltoallwOp(send, recv []Buffer) collectiveOp {
	return collectiveOp{collective: coll.Alltoallw, sends: send, recvs: recv}
}

func reduceCollective(send, recv Buffer, op Op, root int) collectiveOp {
	return collectiveOp{collective: coll.Reduce, send: send.data, recv: recv.data, reduceOp: op.op, root: root}
}

func allreduceOp(send, recv Buffer, op Op) collectiveOp {
	return collectiveOp{collective: coll.Allreduce, send: send.data, recv: recv.data, reduceOp: op.op}
}

func reduceScatterOp(send, recv Buffer, counts []int, op Op) collectiveOp {
	return collectiveOp{collective: coll.ReduceScatter, send: send.data, sendLayout: blockLayout{counts: counts}, recv: recv.data, reduceOp: op.op}
}

func reduceScatterBlockOp(send, recv Buffer, op Op) collectiveOp {
	return collectiveOp{collective: coll.ReduceScatterBlock, send: send.data, recv: recv.data, reduceOp: op.op}
}

func scanOp(send, recv Buffer, op Op) collectiveOp {
	return collectiveOp{collective: coll.Scan, send: send.data, recv: recv.data, reduceOp: op.op}
}

func exscanOp(send, recv Buffer, op Op) collectiveOp {
	return collectiveOp{collective: coll.Exscan, send: send.data, recv: recv.data, reduceOp: op.op}
}
