package datatype

import (
	"errors"
	"fmt"
)

// ErrSignature is what a message is that its receiver does not expect.
var ErrSignature = errors.New("datatype: message and buffer differ")

// Signature is what a message is made of, in the form that its sender can tell
// its receiver, who can then say whether it is what was expected (MPI section
// 3.3.1). Elements that lie differently in memory have the same signature.
type Signature struct {
	Kind  Kind   // of all elements, or Struct
	Unit  uint32 // of Struct: a hash of what one is made of
	Count int    // elements
}

// kindRun is a number of elements of a kind.
type kindRun struct {
	kind  Kind
	count int
}

// addKind notes the kinds that an item is made of.
func (l *layout) addKind(k Kind, count int) {
	if n := len(l.kinds); n > 0 && l.kinds[n-1].kind == k {
		l.kinds[n-1].count += count
	} else if count > 0 {
		l.kinds = append(l.kinds, kindRun{k, count})
	}
}

// Signature is the buffer's signature. Structs whose fields are all of one kind
// have that of an array.
func (b Buffer) Signature() Signature {
	if b.kind != Struct || b.layout == nil {
		return Signature{Kind: b.kind, Count: b.count}
	}
	switch runs := b.layout.kinds; len(runs) {
	case 0:
		return Signature{}
	case 1:
		return Signature{Kind: runs[0].kind, Count: runs[0].count * b.count}
	default:
		hash := uint32(2166136261) // FNV-1a
		mix := func(c byte) { hash = (hash ^ uint32(c)) * 16777619 }
		for _, r := range runs {
			mix(byte(r.kind))
			for n := r.count; ; n >>= 8 {
				mix(byte(n))
				if n < 256 {
					break
				}
			}
		}
		return Signature{Kind: Struct, Unit: hash, Count: b.count}
	}
}

// Accept is nil if a buffer of this signature can receive a message of that one:
// the same kind, and not more of it. Bytes and uint8 are the same. Of structs the
// kinds and numbers of the fields have to agree, not their names.
func (s Signature) Accept(sent Signature) error {
	switch {
	case sent.Count == 0:
		return nil
	case raw(s.Kind) != raw(sent.Kind):
		return fmt.Errorf("%w: %d %v were sent to a buffer of %d %v", ErrSignature, sent.Count, sent.Kind, s.Count, s.Kind)
	case s.Unit != sent.Unit:
		return fmt.Errorf("%w: %d structs were sent to a buffer of %d structs with other fields", ErrSignature, sent.Count, s.Count)
	case sent.Count > s.Count:
		return fmt.Errorf("%w: %d %v were sent to a buffer of %d", ErrSignature, sent.Count, sent.Kind, s.Count)
	}
	return nil
}

// raw makes bytes and uint8 one kind, since they are one type.
func raw(k Kind) Kind {
	if k == Byte {
		return Uint8
	}
	return k
}
