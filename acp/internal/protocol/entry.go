package protocol

// Entry describes a region of a rank for RDMA. A rank's directory has one entry for each region number, which
// other ranks read to resolve an address. The zero Entry is a region that does not exist.
type Entry struct {
	Addr   uint64 // of the first byte, as the adapter addresses it
	Length uint64 // bytes
	RKey   uint32
}

// EntryWords is the length of an entry in words of 8 bytes.
const EntryWords = 4

// EntrySize is the length of an entry in bytes.
const EntrySize = 8 * EntryWords

// EncodeWords encodes the entry. The last word is a checksum, which reveals an entry that was read while it
// changed.
func (e Entry) EncodeWords() [EntryWords]uint64 {
	w := [EntryWords]uint64{e.Addr, e.Length, uint64(e.RKey)}
	w[3] = checksum(w)
	return w
}

// ParseEntry decodes an entry. It returns false if the entry was changing, and must be read again.
func ParseEntry(w [EntryWords]uint64) (e Entry, ok bool) {
	return Entry{Addr: w[0], Length: w[1], RKey: uint32(w[2])}, w[3] == checksum(w)
}

// checksum mixes the words by the finalizer of SplitMix64. The checksum of the zero Entry is 0.
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
