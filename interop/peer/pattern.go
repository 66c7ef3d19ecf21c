package peer

import "hash/crc32"

// block is after how many bytes the pattern repeats: a prime, so that a packet
// in another's place is noticed.
const block = 4099

// Pattern is n bytes that depend on the seed.
func Pattern(n int, seed uint32) []byte {
	b := make([]byte, n)
	fill(b, seed)
	return b
}

func fill(b []byte, seed uint32) {
	for i := range min(len(b), block) {
		n := uint32(i)
		b[i] = byte(n*n*7 + n*seed + n>>8 + seed)
	}
	for done := block; done < len(b); done *= 2 {
		copy(b[done:], b[:done])
	}
}

// PatternSum is what End.Sum is for a range with the pattern.
func PatternSum(n int, seed uint32) uint32 { return crc32.ChecksumIEEE(Pattern(n, seed)) }
