package nack

// slots are the packets that may be asked for again, of all peers: pieces of
// one memory, with the header first. A slot is free when the peer has its packet
// and the adapter is through with it.
type slots struct {
	mem    []byte
	stride int
	length []uint16 // bytes of the packet
	owner  []int32  // its peer
	state  []slotState
	free   []int32
}

type slotState uint8

const (
	retained slotState = 1 << iota // the peer may ask for it
	posted                         // the adapter has it: it must not change
)

// skew moves slots apart by more than a power of two, so that their headers do not
// all fall on the same lines of a processor's cache.
const skew = 64

// slotStride is the distance of slots for packets of mtu bytes.
func slotStride(mtu int) int { return (mtu+skew-1)/skew*skew + skew }

// MemorySize is how many bytes Options.Memory has to have for n packets of mtu bytes.
func MemorySize(n, mtu int) int { return n * slotStride(mtu) }

func (s *slots) init(mem []byte, mtu int) {
	s.mem, s.stride = mem, slotStride(mtu)
	n := len(mem) / s.stride
	s.length, s.owner, s.state, s.free = make([]uint16, n), make([]int32, n), make([]slotState, n), make([]int32, n)
	for i := range s.free {
		s.free[i] = int32(n - 1 - i)
	}
}

// alloc returns a free slot for a peer's packet. There is one.
func (s *slots) alloc(owner, length int) int32 {
	n := len(s.free) - 1
	i := s.free[n]
	s.free = s.free[:n]
	s.length[i], s.owner[i], s.state[i] = uint16(length), int32(owner), retained
	return i
}

// packetBytes is the packet in a slot.
func (s *slots) packetBytes(i int32) []byte {
	at := int(i) * s.stride
	n := at + int(s.length[i])
	return s.mem[at:n:n]
}

// release takes back what a slot is for, and frees it when nothing is left.
func (s *slots) release(i int32, what slotState) {
	if s.state[i]&what == 0 {
		return
	}
	if s.state[i] &^= what; s.state[i] == 0 {
		s.free = append(s.free, i)
	}
}
