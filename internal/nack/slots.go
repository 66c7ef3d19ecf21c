package nack

// slots is the allocator of packet buffers for retransmission, shared by all
// peers. The buffers lie in one memory region. A slot is free when the peer has
// acknowledged its packet and the adapter has sent it.
type slots struct {
	mem    []byte
	stride int
	length []uint16 // packet length in bytes
	owner  []int32  // peer number
	state  []slotState
	free   []int32
}

// A slotState is the set of uses of a slot.
type slotState uint8

const (
	retained slotState = 1 << iota // unacknowledged: may be retransmitted
	posted                         // the adapter reads it: must not change
)

// skew makes the distance of slots differ from powers of two, in bytes, so that
// packet headers do not share the same sets of the processor's cache.
const skew = 64

// slotStride returns the distance between slots for packets of mtu bytes.
func slotStride(mtu int) int { return (mtu+skew-1)/skew*skew + skew }

// MemorySize returns the length in bytes of Options.Memory for n packets of mtu
// bytes.
func MemorySize(n, mtu int) int { return n * slotStride(mtu) }

func (s *slots) init(mem []byte, mtu int) {
	s.mem, s.stride = mem, slotStride(mtu)
	n := len(mem) / s.stride
	s.length, s.owner, s.state, s.free = make([]uint16, n), make([]int32, n), make([]slotState, n), make([]int32, n)
	for i := range s.free {
		s.free[i] = int32(n - 1 - i)
	}
}

// alloc allocates a slot for a packet of a peer. A slot must be free.
func (s *slots) alloc(owner, length int) int32 {
	n := len(s.free) - 1
	i := s.free[n]
	s.free = s.free[:n]
	s.length[i], s.owner[i], s.state[i] = uint16(length), int32(owner), retained
	return i
}

// packetBytes returns the packet in slot i.
func (s *slots) packetBytes(i int32) []byte {
	at := int(i) * s.stride
	n := at + int(s.length[i])
	return s.mem[at:n:n]
}

// release clears a use of slot i, and frees the slot after the last one.
func (s *slots) release(i int32, use slotState) {
	if s.state[i]&use == 0 {
		return
	}
	if s.state[i] &^= use; s.state[i] == 0 {
		s.free = append(s.free, i)
	}
}
