package datatype

import (
	"errors"
	"fmt"
)

// ErrOp is wrapped by the error of an operation that is not defined for its elements.
var ErrOp = errors.New("mpi: invalid reduction operation")

// An Op is an associative operation that combines the elements of two messages (MPI
// 4.1, section 6.9). The zero Op is invalid.
type Op struct {
	name        string
	code        opCode
	commutative bool
	kind        Kind // of a user function
	size        int  // of an element of a user function, in bytes
	apply       func(inout, in []byte)
	err         error // of an invalid user function
}

type opCode uint8

const (
	opNone opCode = iota
	opSum
	opProd
	opMax
	opMin
	opLAnd
	opLOr
	opLXor
	opBAnd
	opBOr
	opBXor
	opMaxLoc
	opMinLoc
	opReplace
	opNoOp
	opUser
	numCodes = opUser
)

// The predefined operations and their kinds of elements (MPI 4.1, sections 6.9.2 and
// 6.9.4). Max and Min of NaN are NaN.
var (
	Sum    = Op{name: "sum", code: opSum, commutative: true}       // integers, floating point, complex
	Prod   = Op{name: "product", code: opProd, commutative: true}  // integers, floating point, complex
	Max    = Op{name: "max", code: opMax, commutative: true}       // integers, floating point
	Min    = Op{name: "min", code: opMin, commutative: true}       // integers, floating point
	LAnd   = Op{name: "land", code: opLAnd, commutative: true}     // integers, bool: 0 is false, true is 1
	LOr    = Op{name: "lor", code: opLOr, commutative: true}       // the same
	LXor   = Op{name: "lxor", code: opLXor, commutative: true}     // the same
	BAnd   = Op{name: "band", code: opBAnd, commutative: true}     // integers, bytes
	BOr    = Op{name: "bor", code: opBOr, commutative: true}       // the same
	BXor   = Op{name: "bxor", code: opBXor, commutative: true}     // the same
	MaxLoc = Op{name: "maxloc", code: opMaxLoc, commutative: true} // pairs: the greatest, of equals that of the least index
	MinLoc = Op{name: "minloc", code: opMinLoc, commutative: true} // pairs: the least, of equals that of the least index

	Replace = Op{name: "replace", code: opReplace} // all kinds: the incoming element, for RMA accumulate
	NoOp    = Op{name: "no-op", code: opNoOp}      // all kinds: the present element
)

// Ops returns the predefined operations.
func Ops() []Op {
	return []Op{Sum, Prod, Max, Min, LAnd, LOr, LXor, BAnd, BOr, BXor, MaxLoc, MinLoc, Replace, NoOp}
}

// String returns the operation's name.
func (o Op) String() string {
	if o.code == opNone {
		return "no operation"
	}
	return o.name
}

// Number returns the index of a predefined operation in Ops, plus 1. It is 0 for a user
// function and for the zero Op.
func (o Op) Number() int {
	if o.code == opUser {
		return 0
	}
	return int(o.code)
}

// Predefined reports whether the operation is not a user function.
func (o Op) Predefined() bool { return o.code != opUser }

// Commutative reports whether the order of the operands is irrelevant. Otherwise a
// reduction combines them in the order of ranks.
func (o Op) Commutative() bool { return o.commutative }

// Valid returns nil if the operation is defined for elements of a kind, and otherwise
// an ErrOp.
func (o Op) Valid(k Kind) error {
	switch {
	case o.code == opNone:
		return fmt.Errorf("%w: zero Op", ErrOp)
	case o.err != nil:
		return o.err
	case o.code == opUser && k.Canonical() != o.kind.Canonical():
		return fmt.Errorf("%w: %s: function of %v applied to %v", ErrOp, o.name, o.kind, k)
	case o.code == opUser, o.code == opReplace, o.code == opNoOp:
		return nil
	case k >= numKinds || opLoops[o.code][k] == nil:
		hint := ""
		if k == Byte {
			hint = "; a []byte of numbers is mpi.Of"
		}
		return fmt.Errorf("%w: %s of %v is undefined, want %s%s", ErrOp, o.name, k, o.validKinds(), hint)
	}
	return nil
}

// Fits is Valid for the elements of a buffer. It distinguishes structs by their size.
func (o Op) Fits(b Buffer) error {
	if err := o.Valid(b.kind); err != nil {
		return err
	}
	if o.code == opUser && o.size != b.ElementSize() {
		return fmt.Errorf("%w: %s: function of elements of %d bytes applied to %d", ErrOp, o.name, o.size, b.ElementSize())
	}
	return nil
}

// validKinds returns the kinds of the operation, for errors.
func (o Op) validKinds() string {
	switch o.code {
	case opSum, opProd:
		return "integers, floating point and complex"
	case opMax, opMin:
		return "integers and floating point"
	case opLAnd, opLOr, opLXor:
		return "integers and bool"
	case opBAnd, opBOr, opBXor:
		return "integers and bytes"
	}
	return "Pair"
}

// Apply sets inout[i] = in[i] op inout[i] for all elements. Both are packed messages of
// equal length. Alignment is not required, but faster.
func (o Op) Apply(k Kind, inout, in []byte) error {
	if err := o.Valid(k); err != nil {
		return err
	}
	size := k.Size()
	if o.code == opUser {
		size = o.size
	}
	if len(inout) != len(in) || size > 0 && len(in)%size != 0 {
		return fmt.Errorf("%w: %s: operands of %d and %d bytes, elements of %d", ErrOp, o.name, len(in), len(inout), size)
	}
	switch o.code {
	case opReplace:
		copy(inout, in)
	case opNoOp:
	case opUser:
		o.apply(inout, in)
	default:
		opLoops[o.code][k](inout, in)
	}
	return nil
}

// Code returns the wire code of a predefined operation. User-defined operations have
// none.
func (o Op) Code() (code uint8, ok bool) { return uint8(o.code), o.code != opNone && o.code != opUser }

// Is reports whether two operations are the same predefined one.
func (o Op) Is(other Op) bool { return o.code == other.code && o.code != opNone && o.code != opUser }

// OpOf returns the predefined operation of a wire code.
func OpOf(code uint8) (o Op, ok bool) {
	for _, o := range Ops() {
		if uint8(o.code) == code {
			return o, true
		}
	}
	return Op{}, false
}
