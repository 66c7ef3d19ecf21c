package wire

import "hash/crc32"

// The arithmetic behind the Sealer. The register of a CRC-32 is a polynomial
// over GF(2) modulo the CRC's polynomial; hashing a byte adds it to the
// register and multiplies by x^8. Reflected, as Ethernet has it: bit 31 is the
// coefficient of x^0, bit 0 that of x^31, and a byte enters in bits 7..0.

const (
	one      = 1 << 31 // the polynomial 1
	poly     = crc32.IEEE
	polyBack = poly<<1&0xFFFFFFFF | 1 // x^-1
)

// Distances in bytes from a field's first byte to the BTH.
const (
	totalLengthToBTH   = IPv4Len - 2 + UDPLen
	idToBTH            = IPv4Len - 4 + UDPLen
	payloadLengthToBTH = IPv6Len - 4 + UDPLen
	udpLengthToBTH     = UDPLen - 4
)

// field is the effect on the register of a 16-bit field somewhere before it:
// one table for its first byte, one for its second.
type field [2][256]uint32

func fieldAt(distance int) *field {
	var f field
	for i := range f {
		for v := range f[i] {
			f[i][v] = mul(uint32(v), shift(distance-i))
		}
	}
	return &f
}

func (f *field) of(v uint16) uint32 { return f[0][v>>8] ^ f[1][v&0xFF] }

var (
	lengthIPv4     = fieldAt(totalLengthToBTH)
	identification = fieldAt(idToBTH)
	lengthIPv6     = fieldAt(payloadLengthToBTH)
	lengthUDP      = fieldAt(udpLengthToBTH)
)

// shift returns x^8n: n bytes forward.
func shift(n int) uint32 {
	r := uint32(one)
	for range 8 * n {
		r = r>>1 ^ poly&-(r&1)
	}
	return r
}

// backLow[i] is x^-8i and backHigh[i] is x^-(8*256*i).
var backLow, backHigh = func() (low, high [256]uint32) {
	low[0], high[0] = one, one
	step := uint32(one)
	for range 8 {
		step = step<<1 ^ polyBack&-(step>>31)
	}
	for i := 1; i < 256; i++ {
		low[i] = mul(low[i-1], step)
	}
	step = mul(low[255], step)
	for i := 1; i < 256; i++ {
		high[i] = mul(high[i-1], step)
	}
	return low, high
}()

// unshift returns x^-8n: n bytes back, for n below 65536.
func unshift(n int) uint32 { return mul(backLow[n&0xFF], backHigh[n>>8&0xFF]) }

// mul returns the product of two polynomials modulo the CRC's.
func mul(a, b uint32) uint32 {
	var p uint32
	for ; b != 0; b <<= 1 {
		p ^= a & -(b >> 31)
		a = a>>1 ^ poly&-(a&1)
	}
	return p
}
