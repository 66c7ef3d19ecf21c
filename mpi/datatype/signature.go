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

// findPeriod finds the shortest sequence of elements that makes all when it is repeated,
// and how often it is: n runs, and the last one where merged is set, since the last kind of
// a sequence is the first of the next. Equal elements have equal signatures by it, however
// they are divided into structs (MPI 4.1, 3.3.1).
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

// Signature is the buffer's signature. Structs whose fields are all of one kind have that
// of an array, and structs of equal structs have that of these.
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
		return Signature{Kind: Struct, Unit: hash, Count: times * b.count}
	}
}

// Accept is nil if a buffer of this signature can receive a message of that one:
// the same kind, and not more of it. Bytes and uint8 are the same. Of structs the
// kinds and numbers of the fields have to agree, not their names.
func (s Signature) Accept(sent Signature) error {
	switch {
	case sent.Count == 0:
		return nil
	case normalizeKind(s.Kind) != normalizeKind(sent.Kind):
		return fmt.Errorf("%w: %d %v were sent to a buffer of %d %v", ErrSignature, sent.Count, sent.Kind, s.Count, s.Kind)
	case s.Unit != sent.Unit:
		return fmt.Errorf("%w: %d structs were sent to a buffer of %d structs with other fields", ErrSignature, sent.Count, s.Count)
	case sent.Count > s.Count:
		return fmt.Errorf("%w: %d %v were sent to a buffer of %d", ErrSignature, sent.Count, sent.Kind, s.Count)
	}
	return nil
}

// normalizeKind makes bytes and uint8 one kind, since they are one type.
func normalizeKind(k Kind) Kind {
	if k == Byte {
		return Uint8
	}
	return k
}
