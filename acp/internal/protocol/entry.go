package protocol

// Entry says what a region of a rank is: how to reach it by RDMA. A rank's directory
// has one for each number of a region, and any rank reads there what an address
// means. The zero Entry is a region that does not exist.
type Entry struct {
	Addr   uint64 // of the first byte, as the adapter has it
	Length uint64 // bytes
	RKey   uint32
}

// EntryWords is the length of an entry in a directory, in words of 8 bytes.
const EntryWords = 4

// EntrySize is the same in bytes.
const EntrySize = 8 * EntryWords

// EncodeWords lays the entry out. The last word tells an entry from one that was read
// while it changed.
func (e Entry) EncodeWords() [EntryWords]uint64 {
	w := [EntryWords]uint64{e.Addr, e.Length, uint64(e.RKey)}
	w[3] = checksum(w)
	return w
}

// ParseEntry reads it back. An entry that was changing is not ok: read it again.
func ParseEntry(w [EntryWords]uint64) (e Entry, ok bool) {
	return Entry{Addr: w[0], Length: w[1], RKey: uint32(w[2])}, w[3] == checksum(w)
}

// checksum mixes the words (the finalizer of SplitMix64 on each). That of nothing is 0.
func checksum(w [EntryWords]uint64) (sum uint64) {
	for _, x := range w[:3] {
		sum ^= x
		sum = (sum ^ sum>>30) * 0xbf58476d1ce4e5b9
		sum = (sum ^ sum>>27) * 0x94d049bb133111eb
		sum ^= sum >> 31
	}
	return sum
}

// ContainsRange reports whether n bytes at an offset lie within the region.
func (e Entry) ContainsRange(offset, n uint64) bool {
	return offset <= e.Length && n <= e.Length-offset
}
