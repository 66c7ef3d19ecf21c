package mpi

import (
	"github.com/softrnic/softrnic/mpi/datatype"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Buffer is the memory of a message: elements of one kind, contiguous or in the layout of a
// derived datatype. See package datatype.
type Buffer = datatype.Buffer

// Op is a reduction operation.
type Op = datatype.Op

// Of returns the buffer of a slice.
func Of[T datatype.Element](s []T) Buffer { return datatype.Of(s) }

// Value returns the buffer of one value.
func Value[T datatype.Element](p *T) Buffer { return datatype.Value(p) }

// OpFunc returns a user-defined operation (MPI_Op_create): f stores into each element of inout
// the combination of the element of in, as the left operand, and itself.
func OpFunc[T datatype.Element](name string, commutative bool, f func(in, inout []T)) Op {
	return datatype.OpFunc(name, commutative, f)
}

// The predefined operations (MPI 4.1, 6.9.2).
var (
	Sum, Prod, Max, Min, MaxLoc, MinLoc = datatype.Sum, datatype.Prod, datatype.Max, datatype.Min, datatype.MaxLoc, datatype.MinLoc
	LAnd, LOr, LXor                     = datatype.LAnd, datatype.LOr, datatype.LXor
	BAnd, BOr, BXor                     = datatype.BAnd, datatype.BOr, datatype.BXor
	Replace, NoOp                       = datatype.Replace, datatype.NoOp
)

// Special ranks, tags and limits.
const (
	AnySource = match.Any // MPI_ANY_SOURCE
	AnyTag    = match.Any // MPI_ANY_TAG
	ProcNull  = -2        // MPI_PROC_NULL: communication with it completes at once
	Undefined = -3        // MPI_UNDEFINED: no color, not a rank
	MaxTag    = 1<<31 - 1 // MPI_TAG_UB
)
