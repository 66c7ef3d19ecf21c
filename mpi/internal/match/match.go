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
