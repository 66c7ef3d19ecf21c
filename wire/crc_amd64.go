//go:build !purego

package wire

import "hash/crc32"

// CRC-32 by folding, for processors that multiply polynomials over GF(2) in
// wide vectors (VPCLMULQDQ). hash/crc32 (Go 1.26) folds too, but into vectors of
// 128 bits, or from 1 KiB on into a single one of 512, and then waits for each
// product. Four wide vectors keep the multiplier busy.
//
// # Folding
//
// The CRC depends only on the remainder of the message modulo the polynomial P. A
// block A may therefore be cleared if a value with the same remainder is added to
// the block B that follows n bits later:
//
//	| A ... | B                    |
//	| 0 ... | B + (A x^n modulo P) |
//	  n bits
//
// A vector is a row of lanes, and a lane is 16 bytes: two polynomials of 64 bits,
// the operands of one multiplication. Bytes are reflected, so the first eight
// are the higher powers and the low half of the lane:
//
//	A     = low x^64     + high
//	A x^n = low x^(n+64) + high x^n  =  low (x^(n+64) modulo P) + high (x^n modulo P)
//
// These are two multiplications by constants, and the products fit in a lane
// again. All lanes go the same distance: two instructions fold a vector.
//
// # Order of work
//
// Zeros in front of a message do nothing to a register of zero. So the register
// is added to the first four bytes of the message M, and zeros in front make it
// a row of whole vectors. Those in excess of a multiple of four fold into the
// next one each, the others into the fourth after them:
//
//	| 0 0 M | M M M | M M M | M M M | M M M | M M M | ... | M M M | M M M | M M M | M M M |
//	  by 1 --> by 1 --> by 4 -------------------------> ...
//
// The lanes of the last four vectors, or of the last one if there are fewer, then
// fold to the same place, 64 bits behind them all. That leaves 96 bits, which are
// divided by P.

// A foldConstants is the set of multipliers of fold512. The elements of a pair
// belong to the low and the high half of a lane.
type foldConstants struct {
	by1     [2]uint64     // folds by one vector
	by4     [2]uint64     // folds by four vectors
	last    [16][2]uint64 // fold the lanes of the last four vectors
	divide  [2]uint64     // x^96 / P without its last coefficient, and P
	indexes [16]uint32    // 0, 1, 2 ...: the numbers of 4-byte words in a vector
}

var constants = newFoldConstants()

func newFoldConstants() *foldConstants {
	const lanes, laneBits = 4, 128
	c := &foldConstants{
		by1:    foldBy(lanes * laneBits),
		by4:    foldBy(4 * lanes * laneBits),
		divide: [2]uint64{barrettQuotient(), crc32.IEEE<<1 | 1},
	}
	for i := range c.last {
		c.last[i] = foldBy((4*lanes-1-i)*laneBits + 64)
	}
	for i := range c.indexes {
		c.indexes[i] = uint32(i)
	}
	return c
}

// foldBy returns the constants that fold a lane by n bits.
func foldBy(n int) [2]uint64 { return [2]uint64{foldMultiplier(n + 64), foldMultiplier(n)} }

// foldMultiplier returns the constant that multiplies by x^n modulo P; 32 divides n. Half
// a lane has its x^0 in bit 63. The product of two halves has it in bit 126 of
// 127, not where a lane has it, which is a factor of x; and the constant has its
// 32 coefficients in bits 32..1, not 63..32, which is one of x^31. x^(n-32) is
// left to do.
func foldMultiplier(n int) uint64 {
	r := uint32(one)
	for range n/32 - 1 {
		r = shift32(r)
	}
	return uint64(r) << 1
}

// barrettQuotient returns x^96 / P by long division, from the coefficient of x^64 in
// bit 0 to that of x^1 in bit 63.
func barrettQuotient() (q uint64) {
	r := uint32(1) // x^31, the most that has no P in it
	for i := range 64 {
		q |= uint64(r&1) << i
		r = r>>1 ^ r&1*crc32.IEEE
	}
	return q
}

// crcUpdate returns the register after p.
func crcUpdate(reg uint32, p []byte) uint32 {
	if !canFold || len(p) < 4 {
		return crcStandard(reg, p)
	}
	return crcFold(reg, p)
}

// crcFold is crcUpdate on a processor that can fold, for 4 bytes and more.
func crcFold(reg uint32, p []byte) uint32 {
	odd := len(p) & 3 // packets have none, for their padding
	return fold512(hashBytes(reg, p[:odd]...), p[odd:], constants)
}

// fold512 hashes p with vectors of 512 bits. len(p) is a multiple of 4 and not 0.
//
//go:noescape
func fold512(reg uint32, p []byte, c *foldConstants) uint32

// canFold reports whether this processor supports fold512. On processors limited to
// vectors of 256 bits, hash/crc32 is as fast.
var canFold = detectFold()

// detectFold checks the features of the processor, and the registers that the
// system saves when it switches threads.
//
// Source: Intel 64 and IA-32 Software Developer's Manual, CPUID and XGETBV.
func detectFold() bool {
	const (
		pclmulqdq, osxsave, avx = 1 << 1, 1 << 27, 1 << 28 // leaf 1, ecx
		avx2, avx512f           = 1 << 5, 1 << 16          // leaf 7, ebx
		vpclmulqdq              = 1 << 10                  // leaf 7, ecx
		keeps512                = 0xE6                     // XCR0
	)
	has := func(set, all uint32) bool { return set&all == all }
	if leaves, _, _ := cpuid(0); leaves < 7 {
		return false
	}
	if _, _, ecx := cpuid(1); !has(ecx, pclmulqdq|osxsave|avx) {
		return false
	}
	_, ebx, ecx := cpuid(7)
	return has(ecx, vpclmulqdq) && has(ebx, avx2|avx512f) && has(xgetbv(), keeps512)
}

// cpuid returns the result of the CPUID instruction for a leaf, subleaf 0.
func cpuid(leaf uint32) (eax, ebx, ecx uint32)

// xgetbv returns the low half of XCR0.
func xgetbv() uint32
