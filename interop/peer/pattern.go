package peer

import "hash/crc32"

// patternPeriod is the period of the pattern in bytes, a prime, so that a packet in the wrong
// place is detected.
const patternPeriod = 4099

// Pattern returns n bytes that depend on seed.
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

// PatternSum returns the result of Side.Sum for a range with the pattern.
func PatternSum(n int, seed uint32) uint32 { return crc32.ChecksumIEEE(Pattern(n, seed)) }
