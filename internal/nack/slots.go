package nack

import "slices"

// slots is the allocator of packet buffers for retransmission, shared by all
// peers. The buffers lie in one memory region, or in slabs. A slot is free when the
// peer has acknowledged its packet and the adapter has sent it. Slots are used in
// their order, as few as possible, so that slabs are needed in theirs.
//
// A slot has memory for a packet of the MTU and memory for a short one, each of which is
// allocated when it is first needed. The length of the packet says in which of them it lies.
type slots struct {
	slabs   [][]byte
	short   int      // Options.Short
	shorts  [][]byte // slabs of short packets
	shift   uint     // a slab has 1<<shift slots
	addSlab func(length int) ([]byte, error)
	stride  int
	length  []uint16 // packet length in bytes
	owner   []int32  // peer number
	state   []slotState
	free    []int32
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

const slabShift = 3

// SlabSlots is the number of packets of a slab.
const SlabSlots = 1 << slabShift

func (s *slots) init(o *Options) {
	s.stride, s.addSlab, s.shift, s.short = slotStride(o.MTU), o.AddSlab, slabShift, o.Short
	if o.Memory != nil {
		s.slabs, s.shift = [][]byte{o.Memory}, 31
	}
	n := o.Slots
	s.length, s.owner, s.state, s.free = make([]uint16, n), make([]int32, n), make([]slotState, n), make([]int32, n)
	for i := range s.free {
		s.free[i] = int32(n - 1 - i)
	}
}

// ensureMemory allocates the memory of the next n slots for packets that are not short. They must
// be free.
func (s *slots) ensureMemory(n int) error {
	for last := int(slices.Max(s.free[len(s.free)-n:])) >> s.shift; last >= len(s.slabs); {
		b, err := s.addSlab(SlabSlots * s.stride)
		if err != nil {
			return err
		}
		s.slabs = append(s.slabs, b)
	}
	return nil
}

// alloc allocates a slot for a packet of a peer, after ensureMemory unless it is short.
func (s *slots) alloc(owner, length int) int32 {
	n := len(s.free) - 1
	i := s.free[n]
	s.free = s.free[:n]
	s.length[i], s.owner[i], s.state[i] = uint16(length), int32(owner), retained
	for length <= s.short && int(i>>slabShift) >= len(s.shorts) {
		s.shorts = append(s.shorts, make([]byte, SlabSlots*slotStride(s.short)))
	}
	return i
}

// packetBytes returns the packet in slot i.
func (s *slots) packetBytes(i int32) []byte {
	if n := int(s.length[i]); n <= s.short {
		at := int(i&(1<<slabShift-1)) * slotStride(s.short)
		return s.shorts[i>>slabShift][at : at+n : at+n]
	}
	slab, at := s.position(i)
	n := at + int(s.length[i])
	return s.slabs[slab][at:n:n]
}

// position returns the slab of the packet in slot i and its offset there, or -1 if it is short.
func (s *slots) position(i int32) (slab, offset int) {
	if int(s.length[i]) <= s.short {
		return -1, 0
	}
	return int(i >> s.shift), int(i&(1<<s.shift-1)) * s.stride
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
