package mpi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/datatype"
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// callSign says in 64 bits what all ranks of a collective call have to agree about. It
// travels with each message of the call, and is shown with what ranks show in memory in
// common, so that comparing calls costs no message.
//
//	 63      57 56        41 40    36 35    31 30           0
//	+----------+------------+--------+--------+--------------+
//	| call     | root, or   | op     | kind   | count        |
//	| 1 to 127 | a hash     |        | and 1  |              |
//	+----------+------------+--------+--------+--------------+
//
// Fields that ranks need not agree about are 0. The hash is of the counts of all ranks,
// or of what a communicator is made of. Of structs the upper bits of count are a hash of
// their fields. 0 is no sign.
type callSign uint64

// Widths of the fields, in bits.
const (
	countBits  = 31
	unitBits   = 11 // of these, of a struct
	kindBits   = 5
	opBits     = 5
	rootBits   = 16
	kindShift  = countBits
	opShift    = kindShift + kindBits
	rootShift  = opShift + opBits
	callShift  = rootShift + rootBits
	userOp     = 16 // and above: operations of the program, by a hash of their names
	otherCalls = 127
	kindMask   = callSign(1<<kindBits-1) << kindShift
)

// otherNames are those of calls that are made of collectives, in errors.
var otherNames = []string{"dup", "split", "split-shared", "create", "create-group", "cart-create", "cart-sub", "win-create", "win-allocate", "finalize"}

// signNames are the calls by their number in a callSign.
var signNames = func() []string {
	forms := [...]form{blocking, background, kept}
	list := []string{"a call"}
	for form := range names {
		list = append(list, names[form][:]...)
	}
	for form := range names {
		for _, what := range []coll.Collective{coll.Allgather, coll.Alltoall} {
			o := operation{what: what, form: forms[form], cart: &Cart{}}
			list = append(list, o.name())
		}
	}
	return append(list, otherNames...)
}()

// number is the call's in a callSign.
func (o *operation) number() int {
	const forms = int(kept) + 1
	switch {
	case o.as != "":
		if i := slices.Index(otherNames, o.as); i >= 0 {
			return len(signNames) - len(otherNames) + i
		}
		return otherCalls
	case o.cart != nil:
		n := 1 + forms*len(shapes) + 2*int(o.form)
		if o.what == coll.Alltoall {
			n++
		}
		return n
	}
	return 1 + int(o.form)*len(shapes) + int(o.what)
}

// newSign is the sign of a call whose arguments are valid.
func (k *call) newSign() callSign {
	o := &k.op
	s := callSign(o.number()) << callShift
	shape := &shapes[o.what]
	if o.cart != nil {
		shape = &shapes[coll.Barrier]
	}
	switch {
	case shape.rooted:
		s |= callSign(uint16(o.root)) << rootShift
	case o.what == coll.Allgatherv:
		s |= callSign(o.recvParts.shortHash(o.recv)) << rootShift
	case o.what == coll.ReduceScatter:
		s |= callSign(o.sendParts.shortHash(k.vector())) << rootShift
	default:
		s |= callSign(o.made) << rootShift
	}
	if shape.op {
		s |= callSign(opNumber(o.op)) << opShift
	}
	b, pieces := k.common()
	switch {
	case o.what == coll.Gatherv || o.what == coll.Scatterv: // pieces differ in size, and are of one kind
		b = o.send
		if o.inPlace && o.what == coll.Gatherv || o.what == coll.Scatterv && o.root != k.comm.rank {
			b = o.recv
		}
		return s | dataSign(b.Signature())>>countBits<<countBits
	case o.what == coll.Allgatherv:
		return s | dataSign(b.Signature())>>countBits<<countBits // what lies between pieces does not count
	case pieces == 0:
		return s
	}
	data := b.Signature()
	data.Count /= pieces
	return s | dataSign(data)
}

// dataSign is the part of a sign that says what data is made of.
func dataSign(s datatype.Signature) callSign {
	if s.Count == 0 {
		return 0 // of whatever kind it would be
	}
	kind := s.Kind
	if kind == datatype.Byte {
		kind = datatype.Uint8 // which is the same type
	}
	count := uint64(s.Count)
	bits := countBits
	if s.Unit != 0 {
		bits -= unitBits
	}
	if count >= 1<<bits { // a hash, which is large
		count = (count^count>>bits)&(1<<(bits-1)-1) | 1<<(bits-1)
	}
	if s.Unit != 0 {
		count |= uint64(s.Unit^s.Unit>>unitBits^s.Unit>>(2*unitBits)) & (1<<unitBits - 1) << bits
	}
	return callSign(kind+1)<<kindShift | callSign(count)
}

// messageSign is the signature of a message between two ranks: its kind, and of structs a
// hash of what one is made of. Of a message without elements it is 0.
func messageSign(b Buffer) uint64 {
	s := b.Signature()
	if s.Count == 0 {
		return 0
	}
	return uint64(dataSign(s)>>kindShift) | uint64(s.Unit)<<kindBits
}

// opNumber is an operation in a sign.
func opNumber(op Op) int {
	if n := op.Number(); n > 0 {
		return n
	}
	h := newShortHash()
	for _, b := range []byte(op.String()) {
		h.add(uint64(b))
	}
	return userOp + int(h.sum()%(1<<opBits-userOp))
}

var predefined = datatype.Ops()

// shortHash is a hash of numbers, FNV-1a, in 16 bits that are not all 0.
type shortHash uint32

func newShortHash() shortHash { return 2166136261 }

func (h *shortHash) add(n uint64) {
	for range 8 {
		*h = (*h ^ shortHash(n&0xff)) * 16777619
		n >>= 8
	}
}

func (h shortHash) sum() uint16 { return uint16(h^h>>16) | 1 }

// shortHash is one of the counts of all ranks.
func (p parts) shortHash(b Buffer) uint16 {
	unit := 1
	if b.Count() > 0 {
		unit = b.Slice(0, 1).Signature().Count
	}
	h := newShortHash()
	for _, n := range p.counts {
		h.add(uint64(n * unit))
	}
	return h.sum()
}

// argumentsSign is a hash of what all ranks give to a call that makes a communicator.
func argumentsSign(args ...any) uint16 {
	if len(args) == 0 {
		return 0
	}
	h := newShortHash()
	for _, b := range []byte(fmt.Sprint(args...)) {
		h.add(uint64(b))
	}
	return h.sum()
}

func (s callSign) field(shift, bits int) int { return int(uint64(s) >> shift & (1<<bits - 1)) }

func (s callSign) call() int  { return s.field(callShift, 64-callShift) }
func (s callSign) root() int  { return s.field(rootShift, rootBits) }
func (s callSign) op() int    { return s.field(opShift, opBits) }
func (s callSign) kind() int  { return s.field(kindShift, kindBits) }
func (s callSign) count() int { return s.field(0, countBits) }

// name is the call's.
func (s callSign) name() string {
	if n := s.call(); n < len(signNames) {
		return signNames[n]
	}
	return "another call"
}

// agrees reports whether two calls belong together. Of calls whose pieces differ in size
// a rank that has none does not know the kind.
func (s callSign) agrees(other callSign) bool {
	if s == other || s == 0 || other == 0 {
		return true
	}
	return (s^other)&^kindMask == 0 && s.count() == 0 && (s.kind() == 0 || other.kind() == 0)
}

// withoutPieces is the sign of the call of a message. Where every two ranks may exchange
// another kind of elements (net.kindOf), the message's own is the business of these two.
func (s callSign) withoutPieces() callSign {
	if what, ok := s.collective(); ok && (what == coll.Alltoallv || what == coll.Alltoallw) {
		return s &^ kindMask
	}
	return s
}

// collective is the call's collective, if it has one.
func (s callSign) collective() (what coll.Collective, ok bool) {
	n := s.call() - 1
	if n < 0 || n >= (int(kept)+1)*len(shapes) {
		return 0, false
	}
	return coll.Collective(n % len(shapes)), true
}

// aspects returns, in words, the properties in which two calls of one name may differ.
func (s callSign) aspects() (list [4]string) {
	what, known := s.collective()
	if kind := s.kind(); kind > 0 {
		k := datatype.Kind(kind - 1)
		list[0], list[1] = fmt.Sprintf("count %d", s.count()), fmt.Sprintf("%v elements", k)
		if k == datatype.Struct {
			list[0] = fmt.Sprintf("count %d", s.count()&(1<<(countBits-unitBits)-1))
			list[1] = fmt.Sprintf("structs of fields %x", s.count()>>(countBits-unitBits))
		}
		if s.count() == 0 {
			list[0] = ""
		}
	} else if known && what != coll.Barrier {
		list[0] = "count 0"
	}
	switch op := s.op(); {
	case op == 0:
	case op <= len(predefined):
		list[2] = fmt.Sprintf("operation %v", predefined[op-1])
	default:
		list[2] = fmt.Sprintf("an operation of its own (%x)", op)
	}
	switch {
	case known && shapes[what].rooted:
		list[3] = fmt.Sprintf("root %d", s.root())
	case s.root() != 0:
		list[3] = fmt.Sprintf("counts %04x", s.root())
		if !known {
			list[3] = fmt.Sprintf("arguments %04x", s.root())
		}
	}
	return list
}

// String is the call in words.
func (s callSign) String() string {
	aspects := s.aspects()
	with := slices.DeleteFunc(aspects[:], func(a string) bool { return a == "" })
	if len(with) == 0 {
		return s.name()
	}
	return s.name() + " with " + strings.Join(with, ", ")
}

// difference says what two ranks call that do not agree.
func difference(rank int, call callSign, other int, theirs callSign) string {
	if call.call() != theirs.call() {
		return fmt.Sprintf("rank %d calls %v, rank %d %v", rank, call, other, theirs)
	}
	mine, others := call.aspects(), theirs.aspects()
	var here, there []string
	for i := range mine {
		if mine[i] != others[i] && mine[i] != "" && others[i] != "" {
			here, there = append(here, mine[i]), append(there, others[i])
		}
	}
	if here == nil {
		here, there = []string{"other arguments"}, []string{"others"}
	}
	return fmt.Sprintf("rank %d calls %s with %s, rank %d with %s", rank, call.name(), strings.Join(here, ", "), other, strings.Join(there, ", "))
}

// sameKind reports whether a message can be received by what expects another signature, or
// the same. Of synchronous messages the kind is known, and not what structs are made of.
func sameKind(sent, expected uint64) bool {
	return sent == expected || sent == 0 || expected == 0 || sent <= envelope.MaxShortSignature && sent == expected&envelope.MaxShortSignature
}

// kindText returns the name of the element kind in the signature of a message.
func kindText(sign uint64) string {
	kind := datatype.Kind(sign&envelope.MaxShortSignature - 1)
	if kind == datatype.Struct {
		return fmt.Sprintf("structs of fields %x", sign>>kindBits)
	}
	return fmt.Sprintf("%v elements", kind)
}
