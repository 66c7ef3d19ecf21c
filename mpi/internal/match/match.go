// Package match implements MPI message matching (MPI 4.1, section 3.5): a message goes
// to the first posted receive that matches it, and a receive takes the first matching
// unexpected message.
//
//	var receives match.Queue[*Request]
//	receives.Push(&r.node)                             // r.node.Envelope may contain Any
//	if n := receives.FindReceive(message); n != nil {  // the first match
//		receives.Remove(n)
//	}
//
// Both lookups take constant time unless wildcards (Any) are involved: a message is
// also compared with the wildcard receives posted before its exact match, and a
// wildcard receive with all messages before its match.
package match

// Any as the source or tag of a receive is a wildcard (MPI_ANY_SOURCE, MPI_ANY_TAG).
const Any = -1

// An Envelope identifies a message for matching (MPI 4.1, section 3.2.3).
type Envelope struct {
	Context uint32 // of the communicator
	Source  int32  // rank
	Tag     int32
}

// Matches reports whether a receive for e, which may contain Any, matches a message
// with envelope m.
func (e Envelope) Matches(m Envelope) bool {
	return e.Context == m.Context && (e.Source == Any || e.Source == m.Source) && (e.Tag == Any || e.Tag == m.Tag)
}

func (e Envelope) isExact() bool { return e.Source != Any && e.Tag != Any }

// hash returns a hash of the envelope for its bin.
func (e Envelope) hash() uint32 {
	h := e.Context*0x9e3779b1 ^ uint32(e.Source)*0x85ebca6b ^ uint32(e.Tag)*0xc2b2ae35
	h ^= h >> 16
	h *= 0x7feb352d
	return h ^ h>>15
}
