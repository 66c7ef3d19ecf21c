package datatype

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Errors of messages and arguments that do not fit a buffer.
var (
	ErrSignature = errors.New("mpi: datatype mismatch") // MPI_ERR_TYPE
	ErrCount     = errors.New("mpi: invalid count")     // MPI_ERR_COUNT
)

// A Signature is the type signature of a message (MPI 4.1, section 3.3.1). The sender
// sends it, and the receiver compares it with that of its buffer. Elements with
// different layouts in memory have the same signature. Its size is fixed, for
// encoding/binary.
type Signature struct {
	Kind  Kind   // of all elements, or Struct
	Unit  uint32 // of Struct: a hash of its fields
	Count int64  // elements
}

// SignatureSize is the size in bytes of an encoded Signature.
const SignatureSize = 1 + 4 + 8

// String returns the number and the kind of the elements.
func (s Signature) String() string { return fmt.Sprintf("%d %v", s.Count, s.Kind) }

// A kindRun is a sequence of elements of one kind.
type kindRun struct {
	kind  Kind
	count int
}

// addKind appends elements of a kind to the fields of an item.
func (l *layout) addKind(k Kind, count int) {
	if n := len(l.kinds); n > 0 && l.kinds[n-1].kind == k {
		l.kinds[n-1].count += count
	} else if count > 0 {
		l.kinds = append(l.kinds, kindRun{k, count})
	}
}

// findPeriod returns the shortest sequence of runs that yields all runs when repeated,
// and the number of repetitions. The sequence has n runs, plus the last one if merged
// is set, because the last kind of a sequence may equal the first of the next. Equal
// elements thus have equal signatures, however they are divided into structs (MPI 4.1,
// section 3.3.1).
func findPeriod(runs []kindRun) (n, times int, merged bool) {
	last := len(runs) - 1
	merged = runs[0].kind == runs[last].kind
	all := len(runs)
	if merged {
		all = last
	}
	repeats := func(n int) bool {
		for i := n; i < all; i++ {
			run := runs[i-n]
			if i == n && merged {
				run.count += runs[last].count
			}
			if runs[i] != run {
				return false
			}
		}
		return true
	}
	for n = 1; all%n != 0 || !repeats(n); n++ {
	}
	return n, all / n, merged
}

// Signature returns the buffer's signature. Structs with fields of one kind have the
// signature of an array, and structs of equal structs have the signature of these.
func (b Buffer) Signature() Signature {
	if b.kind != Struct || b.layout == nil {
		return Signature{Kind: b.kind, Count: int64(b.count)}
	}
	switch runs := b.layout.kinds; len(runs) {
	case 0:
		return Signature{}
	case 1:
		return Signature{Kind: runs[0].kind, Count: int64(runs[0].count * b.count)}
	default:
		hash := uint32(2166136261) // FNV-1a
		mix := func(c byte) { hash = (hash ^ uint32(c)) * 16777619 }
		add := func(r kindRun) {
			mix(byte(r.kind))
			for n := r.count; ; n >>= 8 {
				mix(byte(n))
				if n < 256 {
					break
				}
			}
		}
		n, times, merged := findPeriod(runs)
		for _, r := range runs[:n] {
			add(r)
		}
		if merged {
			add(runs[len(runs)-1])
		}
		return Signature{Kind: Struct, Unit: hash, Count: int64(times * b.count)}
	}
}

// Normalize returns s, or the zero Signature if there are no elements: their kind does not
// matter.
func (s Signature) Normalize() Signature {
	if s.Count == 0 {
		return Signature{}
	}
	return s
}

// Accept returns nil if a buffer of this signature can receive a message of that one:
// the same kind, and no more elements. Bytes and uint8 are equal. Of structs the kinds
// and counts of the fields must match, not their names.
func (s Signature) Accept(sent Signature) error {
	switch {
	case sent.Count == 0:
		return nil
	case s.Kind.Canonical() != sent.Kind.Canonical():
		return fmt.Errorf("%w: message of %d %v, buffer of %d %v", ErrSignature, sent.Count, sent.Kind, s.Count, s.Kind)
	case s.Unit != sent.Unit:
		return fmt.Errorf("%w: message of %d structs, buffer of %d structs with other fields", ErrSignature, sent.Count, s.Count)
	case sent.Count > s.Count:
		return fmt.Errorf("%w: message of %d %v, buffer of %d", ErrSignature, sent.Count, sent.Kind, s.Count)
	}
	return nil
}

// Canonical returns Uint8 for Byte, since they are one type in Go, else k.
func (k Kind) Canonical() Kind {
	if k == Byte {
		return Uint8
	}
	return k
}

// The datatype of a message is compared with that of its receive. The message signature in the
// envelope of each message has the element kind; a message that is packed with its Signature has
// the count as well.

// messageKindBits is the number of bits of the element kind in a message signature.
const messageKindBits = 5

// MessageKindMask is the mask of the element kind in a message signature.
const MessageKindMask = 1<<messageKindBits - 1

// MessageSignature returns the signature of a message from or to b: the element kind, and for
// structs a hash of their fields. It is 0 for an empty message.
func (b Buffer) MessageSignature() uint64 {
	s := b.Signature()
	if s.Count == 0 {
		return 0
	}
	return uint64(s.Kind.Canonical()+1) | uint64(s.Unit)<<messageKindBits
}

// MessagesMatch reports whether a message of one signature may be received by a receive of
// another. A sent signature may lack the hash of struct fields.
func MessagesMatch(sent, expected uint64) bool {
	return sent == expected || sent == 0 || expected == 0 || sent <= MessageKindMask && sent == expected&MessageKindMask
}

// DescribeMessage returns the element kind in a message signature for errors.
func DescribeMessage(signature uint64) string {
	kind := Kind(signature&MessageKindMask - 1)
	if kind == Struct {
		return fmt.Sprintf("structs of fields %x", signature>>messageKindBits)
	}
	return fmt.Sprintf("%v elements", kind)
}

// PackSigned returns a copy of the elements after their Signature, of SignatureSize bytes.
func (b Buffer) PackSigned() []byte {
	mem := make([]byte, SignatureSize+b.Size())
	_, _ = binary.Encode(mem, binary.LittleEndian, b.Signature().Normalize()) // mem is long enough
	b.Pack(mem[SignatureSize:])
	return mem
}

// ErrUnsigned is the error of a message that was not packed by PackSigned.
var ErrUnsigned = errors.New("message without type signature")

// UnpackSigned unpacks a message that PackSigned has packed. It returns ErrSignature if the
// elements differ in kind. Elements beyond the length of b are not unpacked.
func (b Buffer) UnpackSigned(message []byte) error {
	var sent Signature
	if _, err := binary.Decode(message, binary.LittleEndian, &sent); err != nil {
		return fmt.Errorf("%w: %d bytes", ErrUnsigned, len(message))
	}
	s := b.Signature()
	sent.Count = min(sent.Count, s.Count) // truncation is another error
	if err := s.Accept(sent); err != nil {
		return err
	}
	b.Unpack(message[SignatureSize:])
	return nil
}
