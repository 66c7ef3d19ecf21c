package mpi

import (
	"cmp"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// An Op is an associative operation that combines the elements of two messages (MPI 4.1, 6.9).
// The zero Op is invalid.
type Op struct{ op datatype.Op }

// The predefined operations and their elements (MPI 4.1, 6.9.2 and 6.9.4). Max and Min of NaN
// are NaN.
var (
	Sum    = Op{datatype.Sum}    // integers, floating point, complex
	Prod   = Op{datatype.Prod}   // integers, floating point, complex
	Max    = Op{datatype.Max}    // integers, floating point
	Min    = Op{datatype.Min}    // integers, floating point
	LAnd   = Op{datatype.LAnd}   // integers, bool: 0 is false, true is 1
	LOr    = Op{datatype.LOr}    // integers, bool
	LXor   = Op{datatype.LXor}   // integers, bool
	BAnd   = Op{datatype.BAnd}   // integers, bytes
	BOr    = Op{datatype.BOr}    // integers, bytes
	BXor   = Op{datatype.BXor}   // integers, bytes
	MaxLoc = Op{datatype.MaxLoc} // pairs: the greatest, of equals that of the least index
	MinLoc = Op{datatype.MinLoc} // pairs: the least, of equals that of the least index

	Replace = Op{datatype.Replace} // all elements: the incoming one, for one-sided operations
	NoOp    = Op{datatype.NoOp}    // all elements: the present one, for one-sided operations
)

// OpFunc returns a user-defined operation (MPI_Op_create): f sets inout[i] = in[i] op inout[i].
// It must be associative and must not keep the slices, which may be any part of a message. If
// it is not commutative, operands are combined in the order of ranks. Calls with a nil f return
// an ErrOp. A panic of f reaches the caller of a blocking call, and ends the process in other
// calls, which have a goroutine of their own.
func OpFunc[T Element](name string, commutative bool, f func(in, inout []T)) Op {
	return Op{datatype.OpFunc(name, commutative, f)}
}

// OpStructs returns a user-defined operation on the elements of a Buffer made by Structs[T]
// without field names. Padding that f sees is undefined. For a T with pointers, calls return an
// ErrOp.
func OpStructs[T any](name string, commutative bool, f func(in, inout []T)) Op {
	return Op{datatype.OpStructs(name, commutative, f)}
}

// Commutative reports whether the order of the operands is irrelevant (MPI_Op_commutative).
// Otherwise a reduction combines them in the order of ranks.
func (o Op) Commutative() bool { return o.op.Commutative() }

// String returns the operation's name.
func (o Op) String() string { return o.op.String() }

// ReduceLocal sets inout[i] = in[i] op inout[i] for all elements (MPI_Reduce_local). The two
// buffers have equally many elements of one kind.
func ReduceLocal(in, inout Buffer, op Op) error {
	if err := reduceLocal(in.data, inout.data, op.op); err != nil {
		return &Error{Op: "reduce-local", Rank: Undefined, Err: err}
	}
	return nil
}

func reduceLocal(in, inout datatype.Buffer, op datatype.Op) error {
	if err := cmp.Or(in.Check(false), inout.Check(true), op.Fits(in), op.Fits(inout)); err != nil {
		return err
	}
	if in.Count() != inout.Count() {
		return fmt.Errorf("%w: %d and %d elements, want equally many", ErrCount, in.Count(), inout.Count())
	}
	if err := inout.Signature().Accept(in.Signature()); err != nil {
		return err
	}
	b, packed := packedBytes(inout)
	a, _ := packedBytes(in)
	if err := op.Apply(inout.Kind(), b, a); err != nil {
		return err
	}
	if packed {
		inout.Unpack(b)
	}
	return nil
}

// packedBytes returns the elements of a buffer in packed form: its memory if that is
// contiguous, else a copy.
func packedBytes(b datatype.Buffer) (mem []byte, copied bool) {
	if mem, ok := b.Contiguous(); ok {
		return mem, false
	}
	mem = make([]byte, b.Size())
	b.Pack(mem)
	return mem, true
}
