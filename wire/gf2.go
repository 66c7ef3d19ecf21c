package wire

import "hash/crc32"

// The arithmetic behind ICRC. The register of a CRC-32 is a polynomial
// over GF(2) modulo the CRC's polynomial; hashing a byte adds it to the
// register and multiplies by x^8. Reflected, as Ethernet has it: bit 31 is the
// coefficient of x^0, bit 0 that of x^31, and a byte enters in bits 7..0.

const one = 1 << 31 // the polynomial 1, x^0

// shift8 multiplies by x^8: the register after one more zero byte.
func shift8(r uint32) uint32 { return crc32.IEEETable[r&0xFF] ^ r>>8 }

// shift32 multiplies by x^32: the register after four more zero bytes.
func shift32(r uint32) uint32 {
	return shiftTables[3][r&0xFF] ^ shiftTables[2][r>>8&0xFF] ^ shiftTables[1][r>>16&0xFF] ^ shiftTables[0][r>>24]
}

// shiftTables[i] multiplies a byte by x^8(i+1).
var shiftTables = func() (t [4][256]uint32) {
	for v := range t[0] {
		r := uint32(v)
		for i := range t {
			r = shift8(r)
			t[i][v] = r
		}
	}
	return t
}()

// mulMod returns the product of two polynomials modulo the CRC's.
func mulMod(a, b uint32) uint32 {
	wide := mulCarryless(a, b) << 1 // bit 63 is x^0, bit 0 is x^63
	return uint32(wide>>32) ^ shift32(uint32(wide))
}

// mulCarryless returns the 63-bit product of two polynomials, with additions that
// do not carry, from ordinary multiplications: operands are split so that only
// every fourth bit is in use, and a sum of at most eight ones does not reach
// the next bit in use.
func mulCarryless(a, b uint32) uint64 {
	const (
		m0 = 0x1111111111111111
		m1 = 0x2222222222222222
		m2 = 0x4444444444444444
		m3 = 0x8888888888888888
	)
	x, y := uint64(a), uint64(b)
	x0, x1, x2, x3 := x&m0, x&m1, x&m2, x&m3
	y0, y1, y2, y3 := y&m0, y&m1, y&m2, y&m3
	return (x0*y0^x1*y3^x2*y2^x3*y1)&m0 |
		(x0*y1^x1*y0^x2*y3^x3*y2)&m1 |
		(x0*y2^x1*y1^x2*y0^x3*y3)&m2 |
		(x0*y3^x1*y2^x2*y1^x3*y0)&m3
}

// fieldTable is the effect on the register of a 16-bit field that was hashed some
// way back: a table for its first byte and one for its second.
type fieldTable [2][256]uint32

// newFieldTable returns the effect of a field whose first byte is distance bytes
// before the point where the register is looked at.
func newFieldTable(distance int) *fieldTable {
	f := new(fieldTable)
	for i := range f {
		for v := range f[i] {
			r := uint32(v)
			for range distance - i {
				r = shift8(r)
			}
			f[i][v] = r
		}
	}
	return f
}

func (f *fieldTable) contribution(v uint16) uint32 { return f[0][v>>8] ^ f[1][v&0xFF] }

// Powers of x^-8: backLow[i] leads i bytes back, backHigh[i] 256 times as far.
// Two tables of 256 reach every distance; one for each would be 256 KiB.
var backLow, backHigh = func() (low, high [256]uint32) {
	oneBack := uint32(one)
	for range 8 { // divide by x
		if oneBack&one != 0 {
			oneBack = (oneBack^crc32.IEEE)<<1 | 1
		} else {
			oneBack <<= 1
		}
	}
	powers := func(p *[256]uint32, x uint32) {
		p[0] = one
		for i := 1; i < len(p); i++ {
			p[i] = mulMod(p[i-1], x)
		}
	}
	powers(&low, oneBack)
	powers(&high, mulMod(low[255], oneBack))
	return low, high
}()

// unshift divides by x^8n: the register before n zero bytes. n is at most
// 65535, which no datagram exceeds.
func unshift(r uint32, n int) uint32 {
	r = mulMod(r, backLow[n&0xFF])
	if n > 0xFF {
		r = mulMod(r, backHigh[n>>8&0xFF])
	}
	return r
}
