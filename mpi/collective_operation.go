package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/datatype"
	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// InPlace in the place of a buffer says that the data is in the other one
// already (MPI_IN_PLACE).
var InPlace = datatype.Bytes(inPlaceMarker[:])

var inPlaceMarker [1]byte

func isInPlace(b Buffer) bool {
	mem, ok := b.Contiguous()
	return ok && len(mem) == 1 && &mem[0] == &inPlaceMarker[0]
}

// collectiveOp is a collective call, as the program has made it.
type collectiveOp struct {
	collective             coll.Collective
	root                   int
	send, recv             Buffer
	sendLayout, recvLayout blockLayout
	sends, recvs           []Buffer // of Alltoallw
	reduceOp               Op
	form                   form
	cart                   *Cart  // the call is one with neighbors
	calledAs               string // what errors call it, if not its name
	isFinalize             bool   // it is Finalize's, to which no other call belongs
	argErr                 error  // why its arguments cannot be, if that is known
	argsHash               uint16 // hash of what all ranks make a communicator of, 0 if there is nothing
	inPlace                bool   // found by valid
}

// blockLayout says where in a buffer the pieces of the ranks are, in elements.
type blockLayout struct{ counts, displs []int }

// form is how a call is made.
type form uint8

const (
	blocking form = iota
	nonblocking
	persistent
)

// collectiveNames are those of the calls, by form.
var collectiveNames = func() (list [persistent + 1][len(collectiveShapes)]string) {
	for what := range list[blocking] {
		name := coll.Collective(what).String()
		list[blocking][what], list[nonblocking][what], list[persistent][what] = name, "i"+name, "persistent "+name
	}
	return list
}()

// callName is what errors call it.
func (o *collectiveOp) callName() string {
	switch {
	case o.calledAs != "":
		return o.calledAs
	case o.cart != nil:
		return [...]string{"", "i", "persistent "}[o.form] + "neighbor-" + o.collective.String()
	}
	return collectiveNames[o.form][o.collective]
}

// describeRoot says what else errors have to know.
func (o *collectiveOp) describeRoot() string {
	if !collectiveShapes[o.collective].rooted {
		return ""
	}
	return fmt.Sprintf("with root %d", o.root)
}

// extent is how much of a buffer is for a rank.
type extent uint8

const (
	noBuffer    extent = iota // there is no buffer
	wholeBuffer               // all of it
	equalBlocks               // one of the pieces that it is cut into
	layoutBlock               // its part
)

// collectiveShapes are those of the calls, but for Alltoallw, which has more buffers than
// these two. What a rank has for itself is as long at both ends.
var collectiveShapes = [...]struct {
	send, recv extent
	rooted     bool // the longer one counts at the root only
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
