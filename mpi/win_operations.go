package mpi

import (
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/onesided"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// A Place is the layout of the elements of an operation in the window of a target: target
// displacement, count and datatype of the standard, in elements of the operation's buffer, with
// the alignment gaps of a slice. The zero Place is At(0).
type Place struct{ place rma.Place }

// At returns a contiguous place at a displacement, for any number of elements.
func At(disp int) Place { return Place{rma.At(disp)} }

// Strided returns a place of count blocks of block elements, whose starts are stride elements
// apart (MPI_Type_vector). At(0).Strided(rows, 1, columns) is the column of a matrix.
func (p Place) Strided(count, block, stride int) Place {
	return Place{p.place.Strided(count, block, stride)}
}

// Indexed returns a place of blocks whose indices count from the displacement
// (MPI_Type_indexed). It does not keep blocks.
func (p Place) Indexed(blocks []Block) Place {
	list := make([]datatype.Block, len(blocks))
	for i, b := range blocks {
		list[i] = datatype.Block(b)
	}
	return Place{p.place.Indexed(list)}
}

// String returns the place for errors and logs.
func (p Place) String() string { return p.place.String() }

// Put writes elements to a place in the window of target (MPI_Put). The buffer belongs to the
// window until a flush or the end of the epoch.
func (w *Win) Put(b Buffer, target int, at Place) error {
	return w.startOperation("put", onesided.NewPut(b.data, at.place), target)
}

// Rput is Put with a request, which is done when the buffer may be reused (MPI_Rput).
func (w *Win) Rput(b Buffer, target int, at Place) (*Request, error) {
	return w.startRequest("rput", onesided.NewPut(b.data, at.place), target)
}

// Get reads elements from a place in the window of target (MPI_Get).
func (w *Win) Get(b Buffer, target int, at Place) error {
	return w.startOperation("get", onesided.NewGet(b.data, at.place), target)
}

// Rget is Get with a request, which is done when the elements have arrived (MPI_Rget).
func (w *Win) Rget(b Buffer, target int, at Place) (*Request, error) {
	return w.startRequest("rget", onesided.NewGet(b.data, at.place), target)
}

// Accumulate combines elements with those at a place in the window of target, by a predefined
// operation except NoOp (MPI_Accumulate). Two calls of one origin for the same place are
// applied in order. See Win for atomicity.
func (w *Win) Accumulate(b Buffer, target int, at Place, op Op) error {
	return w.startOperation("accumulate", onesided.NewAccumulate(b.data, at.place, op.op), target)
}

// Raccumulate is Accumulate with a request, which is done when the buffer may be reused
// (MPI_Raccumulate).
func (w *Win) Raccumulate(b Buffer, target int, at Place, op Op) (*Request, error) {
	return w.startRequest("raccumulate", onesided.NewAccumulate(b.data, at.place, op.op), target)
}

// GetAccumulate is Accumulate that also reads the elements before the operation into result
// (MPI_Get_accumulate). With NoOp it only reads, and b may be Buffer{}.
func (w *Win) GetAccumulate(b, result Buffer, target int, at Place, op Op) error {
	return w.startOperation("get-accumulate", onesided.NewGetAccumulate(b.data, result.data, at.place, op.op), target)
}

// RgetAccumulate is GetAccumulate with a request, which is done when the result has arrived
// (MPI_Rget_accumulate).
func (w *Win) RgetAccumulate(b, result Buffer, target int, at Place, op Op) (*Request, error) {
	return w.startRequest("rget-accumulate", onesided.NewGetAccumulate(b.data, result.data, at.place, op.op), target)
}

// FetchAndOp is GetAccumulate of one element (MPI_Fetch_and_op).
func (w *Win) FetchAndOp(b, result Buffer, target, disp int, op Op) error {
	return w.startOperation("fetch-and-op", onesided.NewFetchAndOp(b.data, result.data, disp, op.op), target)
}

// CompareAndSwap reads one element into result and replaces it by b if it is equal to compare
// (MPI_Compare_and_swap). Elements are integers, bytes or bool.
func (w *Win) CompareAndSwap(b, compare, result Buffer, target, disp int) error {
	return w.startOperation("compare-and-swap", onesided.NewCompareAndSwap(b.data, compare.data, result.data, disp), target)
}

// startOperation starts an operation.
func (w *Win) startOperation(name string, o onesided.Operation, target int) error {
	if err := w.asWindow().StartOperation(&o, target, nil); err != nil {
		return w.asComm().fail(name, onesided.DescribeTarget(target, o.At), err)
	}
	return nil
}

// startRequest starts an operation with a Request.
func (w *Win) startRequest(name string, o onesided.Operation, target int) (*Request, error) {
	r, err := w.asComm().messageState().StartOperation(name, w.asWindow(), &o, target)
	return handleOf(r), err
}
