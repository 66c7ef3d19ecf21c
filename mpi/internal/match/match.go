package match

// Any as a source or tag of a receive matches every one of the communicator.
const Any = -1

// Envelope is what a message is matched by (MPI 4.1, 3.2.3).
type Envelope struct {
	Context uint32 // of the communicator
	Source  int32  // rank
	Tag     int32
}

// Matches reports whether a receive for e, which may have Any in it, takes a
// message with envelope m.
func (e Envelope) Matches(m Envelope) bool {
	return e.Context == m.Context && (e.Source == Any || e.Source == m.Source) && (e.Tag == Any || e.Tag == m.Tag)
}

func (e Envelope) isExact() bool { return e.Source != Any && e.Tag != Any }

// hash spreads envelopes evenly.
func (e Envelope) hash() uint32 {
	h := e.Context*0x9e3779b1 ^ uint32(e.Source)*0x85ebca6b ^ uint32(e.Tag)*0xc2b2ae35
	h ^= h >> 16
	h *= 0x7feb352d
	return h ^ h>>15
}
