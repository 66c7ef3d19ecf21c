package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/datatype"
	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// InPlace in the place of a buffer says that the data is in the other one
// already (MPI_IN_PLACE).
var InPlace = datatype.Bytes(mark[:])

var mark [1]byte

func isInPlace(b Buffer) bool {
	mem, ok := b.Contiguous()
	return ok && len(mem) == 1 && &mem[0] == &mark[0]
}

// operation is a collective call, as the program has made it.
type operation struct {
	what                 coll.Collective
	root                 int
	send, recv           Buffer
	sendParts, recvParts parts
	sends, recvs         []Buffer // of Alltoallw
	op                   Op
	form                 form
	cart                 *Cart  // the call is one with neighbors
	as                   string // what errors call it, if not its name
	last                 bool   // it is Finalize's, to which no other call belongs
	wrong                error  // why its arguments cannot be, if that is known
	made                 uint16 // hash of what all ranks make a communicator of, 0 if there is nothing
	inPlace              bool   // found by valid
}

// parts says where in a buffer the pieces of the ranks are, in elements.
type parts struct{ counts, displs []int }

// form is how a call is made.
type form uint8

const (
	blocking form = iota
	background
	kept
)

// names are those of the calls, by form.
var names = func() (list [kept + 1][len(shapes)]string) {
	for what := range list[blocking] {
		name := coll.Collective(what).String()
		list[blocking][what], list[background][what], list[kept][what] = name, "i"+name, "persistent "+name
	}
	return list
}()

// name is what errors call it.
func (o *operation) name() string {
	switch {
	case o.as != "":
		return o.as
	case o.cart != nil:
		return [...]string{"", "i", "persistent "}[o.form] + "neighbor-" + o.what.String()
	}
	return names[o.form][o.what]
}

// with says what else errors have to know.
func (o *operation) with() string {
	if !shapes[o.what].rooted {
		return ""
	}
	return fmt.Sprintf("with root %d", o.root)
}

// extent is how much of a buffer is for a rank.
type extent uint8

const (
	none  extent = iota // there is no buffer
	whole               // all of it
	equal               // one of the pieces that it is cut into
	part                // its part
)

// shapes are those of the calls, but for Alltoallw, which has more buffers than
// these two. What a rank has for itself is as long at both ends.
var shapes = [...]struct {
	send, recv extent
	rooted     bool // the longer one counts at the root only
	op         bool
}{
	coll.Barrier:            {},
	coll.Bcast:              {none, whole, true, false},
	coll.Gather:             {whole, equal, true, false},
	coll.Gatherv:            {whole, part, true, false},
	coll.Scatter:            {equal, whole, true, false},
	coll.Scatterv:           {part, whole, true, false},
	coll.Allgather:          {whole, equal, false, false},
	coll.Allgatherv:         {whole, part, false, false},
	coll.Alltoall:           {equal, equal, false, false},
	coll.Alltoallv:          {part, part, false, false},
	coll.Alltoallw:          {},
	coll.Reduce:             {whole, whole, true, true},
	coll.Allreduce:          {whole, whole, false, true},
	coll.ReduceScatter:      {part, whole, false, true},
	coll.ReduceScatterBlock: {equal, whole, false, true},
	coll.Scan:               {whole, whole, false, true},
	coll.Exscan:             {whole, whole, false, true},
}
