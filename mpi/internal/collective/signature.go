package collective

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/topology"
)

// callSignature encodes in 64 bits the arguments that all ranks of a collective call must agree
// on. Each message of the call carries it, and each rank publishes it in shared memory, so that
// comparing calls costs no message.
//
//	 63      57 56        41 40    36 35    31 30           0
//	+----------+------------+--------+--------+--------------+
//	| call     | root, or   | op     | kind   | count        |
//	| 1 to 127 | a hash     |        | and 1  |              |
//	+----------+------------+--------+--------+--------------+
//
// Fields that may differ between ranks are 0. The hash is that of the counts of all ranks, or
// of the arguments of a call that makes a communicator. For structs the upper bits of count are
// a hash of their fields. The zero value is no signature.
type callSignature uint64

// Widths of the fields, in bits.
const (
	countBits   = 31
	unitBits    = 11 // of these, hash of a struct's fields
	kindBits    = 5
	opBits      = 5
	rootBits    = 16
	kindShift   = countBits
	opShift     = kindShift + kindBits
	rootShift   = opShift + opBits
	callShift   = rootShift + rootBits
	userOp      = 16 // from here on: hash of the name of a user-defined operation
	unknownCall = 127
	kindMask    = callSignature(1<<kindBits-1) << kindShift
)

// derivedCallNames lists the names in errors of calls built on collectives.
var derivedCallNames = []string{"dup", "split", "split-shared", "create", "create-group", "cart-create", "cart-sub", "win-create", "win-allocate", "finalize"}

// callNames lists the names of calls by their number in a callSignature.
var callNames = func() []string {
	forms := [...]form{blocking, nonblocking, persistent}
	list := []string{"a call"}
	for form := range opNames {
		list = append(list, opNames[form][:]...)
	}
	for form := range opNames {
		for _, collective := range []coll.Collective{coll.Allgather, coll.Alltoall} {
			o := Op{collective: collective, form: forms[form], grid: &topology.Grid{}}
			list = append(list, o.Name())
		}
	}
	return append(list, derivedCallNames...)
}()

func (o *Op) callNumber() int {
	const forms = int(persistent) + 1
	switch {
	case o.calledAs != "":
		if i := slices.Index(derivedCallNames, o.calledAs); i >= 0 {
			return len(callNames) - len(derivedCallNames) + i
		}
		return unknownCall
	case o.grid != nil:
		n := 1 + forms*len(shapes) + 2*int(o.form)
		if o.collective == coll.Alltoall {
			n++
		}
		return n
	}
	return 1 + int(o.form)*len(shapes) + int(o.collective)
}

// newSignature returns the signature of a call with valid arguments at a rank.
func (o *Op) newSignature(rank, size int) callSignature {
	s := callSignature(o.callNumber()) << callShift
	shape := &shapes[o.collective]
	if o.grid != nil {
		shape = &shapes[coll.Barrier]
	}
	switch {
	case shape.rooted:
		s |= callSignature(uint16(o.root)) << rootShift
	case o.collective == coll.Allgatherv:
		s |= callSignature(o.recvLayout.shortCountsHash(o.recv)) << rootShift
	case o.collective == coll.ReduceScatter:
		s |= callSignature(o.sendLayout.shortCountsHash(o.reduceBuffer())) << rootShift
	default:
		s |= callSignature(o.argsHash) << rootShift
	}
	if shape.op {
		s |= callSignature(opNumber(o.reduceOp)) << opShift
	}
	b, pieces := o.commonBuffer(size)
	switch {
	case o.collective == coll.Gatherv || o.collective == coll.Scatterv: // blocks of one kind and different sizes
		b = o.send
		if o.inPlace && o.collective == coll.Gatherv || o.collective == coll.Scatterv && o.root != rank {
			b = o.recv
		}
		return s | dataSignature(b.Signature())>>countBits<<countBits
	case o.collective == coll.Allgatherv:
		return s | dataSignature(b.Signature())>>countBits<<countBits // the gaps between blocks may differ
	case pieces == 0:
		return s
	}
	data := b.Signature()
	data.Count /= int64(pieces)
	return s | dataSignature(data)
}

// dataSignature returns the bits of a signature that describe the elements.
func dataSignature(s datatype.Signature) callSignature {
	if s.Count == 0 {
		return 0 // elements of any kind
	}
	count := uint64(s.Count)
	bits := countBits
	if s.Unit != 0 {
		bits -= unitBits
	}
	if count >= 1<<bits { // a hash with the top bit set
		count = (count^count>>bits)&(1<<(bits-1)-1) | 1<<(bits-1)
	}
	if s.Unit != 0 {
		count |= uint64(s.Unit^s.Unit>>unitBits^s.Unit>>(2*unitBits)) & (1<<unitBits - 1) << bits
	}
	return callSignature(s.Kind.Canonical()+1)<<kindShift | callSignature(count)
}

// opNumber returns the number of a reduction operation in a signature.
func opNumber(op datatype.Op) int {
	if n := op.Number(); n > 0 {
		return n
	}
	h := newHash16()
	for _, b := range []byte(op.String()) {
		h.addUint64(uint64(b))
	}
	return userOp + int(h.sum16()%(1<<opBits-userOp))
}

var predefined = datatype.Ops()

// hash16 computes FNV-1a, folded to 16 bits that are not all 0.
type hash16 uint32

func newHash16() hash16 { return 2166136261 }

func (h *hash16) addUint64(n uint64) {
	for range 8 {
		*h = (*h ^ hash16(n&0xff)) * 16777619
		n >>= 8
	}
}

// sum16 returns the hash.
func (h hash16) sum16() uint16 { return uint16(h^h>>16) | 1 }

// shortCountsHash returns a hash of the counts of all ranks.
func (l blockLayout) shortCountsHash(b datatype.Buffer) uint16 {
	unit := 1
	if b.Count() > 0 {
		unit = int(b.Slice(0, 1).Signature().Count)
	}
	h := newHash16()
	for _, n := range l.counts {
		h.addUint64(uint64(n * unit))
	}
	return h.sum16()
}

// argumentsHash returns a hash of the arguments that must be equal at all ranks of a call that
// makes a communicator.
func argumentsHash(args ...any) uint16 {
	if len(args) == 0 {
		return 0
	}
	h := newHash16()
	for _, b := range []byte(fmt.Sprint(args...)) {
		h.addUint64(uint64(b))
	}
	return h.sum16()
}

func (s callSignature) bitField(shift, bits int) int { return int(uint64(s) >> shift & (1<<bits - 1)) }

func (s callSignature) callNumber() int { return s.bitField(callShift, 64-callShift) }
func (s callSignature) rootField() int  { return s.bitField(rootShift, rootBits) }
func (s callSignature) opField() int    { return s.bitField(opShift, opBits) }
func (s callSignature) kindField() int  { return s.bitField(kindShift, kindBits) }
func (s callSignature) countField() int { return s.bitField(0, countBits) }

func (s callSignature) Name() string {
	if n := s.callNumber(); n < len(callNames) {
		return callNames[n]
	}
	return "another call"
}

// sameCall reports whether two calls match. In calls with blocks of different sizes, a rank with
// empty blocks does not know the element kind.
func (s callSignature) sameCall(other callSignature) bool {
	if s == other || s == 0 || other == 0 {
		return true
	}
	return (s^other)&^kindMask == 0 && s.countField() == 0 && (s.kindField() == 0 || other.kindField() == 0)
}

// withoutElementKind returns the signature of the call of a message. In calls where each pair
// of ranks may use another element kind (callNet.elementKind), the kind in the message concerns
// only this pair.
func (s callSignature) withoutElementKind() callSignature {
	if collective, ok := s.collectiveOf(); ok && (collective == coll.Alltoallv || collective == coll.Alltoallw) {
		return s &^ kindMask
	}
	return s
}

// collectiveOf returns the collective of the call, if it is one.
func (s callSignature) collectiveOf() (collective coll.Collective, ok bool) {
	n := s.callNumber() - 1
	if n < 0 || n >= (int(persistent)+1)*len(shapes) {
		return 0, false
	}
	return coll.Collective(n % len(shapes)), true
}

// describeFields describes the fields in which two calls of one name may differ.
func (s callSignature) describeFields() (list [4]string) {
	collective, known := s.collectiveOf()
	if kind := s.kindField(); kind > 0 {
		k := datatype.Kind(kind - 1)
		list[0], list[1] = fmt.Sprintf("count %d", s.countField()), fmt.Sprintf("%v elements", k)
		if k == datatype.Struct {
			list[0] = fmt.Sprintf("count %d", s.countField()&(1<<(countBits-unitBits)-1))
			list[1] = fmt.Sprintf("structs of fields %x", s.countField()>>(countBits-unitBits))
		}
		if s.countField() == 0 {
			list[0] = ""
		}
	} else if known && collective != coll.Barrier {
		list[0] = "count 0"
	}
	switch op := s.opField(); {
	case op == 0:
	case op <= len(predefined):
		list[2] = fmt.Sprintf("operation %v", predefined[op-1])
	default:
		list[2] = fmt.Sprintf("user-defined operation (%x)", op)
	}
	switch {
	case known && shapes[collective].rooted:
		list[3] = fmt.Sprintf("root %d", s.rootField())
	case s.rootField() != 0:
		list[3] = fmt.Sprintf("counts %04x", s.rootField())
		if !known {
			list[3] = fmt.Sprintf("arguments %04x", s.rootField())
		}
	}
	return list
}

// String returns the call with its arguments.
func (s callSignature) String() string {
	aspects := s.describeFields()
	with := slices.DeleteFunc(aspects[:], func(a string) bool { return a == "" })
	if len(with) == 0 {
		return s.Name()
	}
	return s.Name() + " with " + strings.Join(with, ", ")
}

// describeMismatch describes the difference of the calls of two ranks.
func describeMismatch(rank int, ours callSignature, other int, theirs callSignature) string {
	if ours.callNumber() != theirs.callNumber() {
		return fmt.Sprintf("rank %d calls %v, rank %d %v", rank, ours, other, theirs)
	}
	mine, others := ours.describeFields(), theirs.describeFields()
	var here, there []string
	for i := range mine {
		if mine[i] != others[i] && mine[i] != "" && others[i] != "" {
			here, there = append(here, mine[i]), append(there, others[i])
		}
	}
	if here == nil {
		here, there = []string{"other arguments"}, []string{"others"}
	}
	return fmt.Sprintf("rank %d calls %s with %s, rank %d with %s", rank, ours.Name(), strings.Join(here, ", "), other, strings.Join(there, ", "))
}
