package peer

import "hash/crc32"

// patternPeriod is after how many bytes the pattern repeats: a prime, so that a packet
// in another's place is noticed.
const patternPeriod = 4099

// Pattern is n bytes that depend on the seed.
func Pattern(n int, seed uint32) []byte {
	b := make([]byte, n)
	fillPattern(b, seed)
	return b
}

func fillPattern(b []byte, seed uint32) {
	for i := range min(len(b), patternPeriod) {
		n := uint32(i)
		b[i] = byte(n*n*7 + n*seed + n>>8 + seed)
	}
	for done := patternPeriod; done < len(b); done *= 2 {
		copy(b[done:], b[:done])
	}
}

// PatternSum is what End.Sum is for a range with the pattern.
func PatternSum(n int, seed uint32) uint32 { return crc32.ChecksumIEEE(Pattern(n, seed)) }
