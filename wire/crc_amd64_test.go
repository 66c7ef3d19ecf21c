//go:build !purego

package wire

import (
	"math/big"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// init adds the fold to the implementations under test.
func init() {
	if canFold {
		CRCWays = append(CRCWays, CRCWay{"fold", func(reg uint32, p []byte) uint32 {
			if len(p) < 4 {
				return crcStandard(reg, p)
			}
			return crcFold(reg, p)
		}})
	}
}

// Polynomials over GF(2) in normal order: bit i is the coefficient of x^i.
var polynomial = big.NewInt(0x104C11DB7)

func powerOfX(n int) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(n)) }

// longDivision returns the quotient a / P and the remainder.
func longDivision(a *big.Int) (quotient, remainder *big.Int) {
	quotient, remainder = new(big.Int), new(big.Int).Set(a)
	for remainder.BitLen() >= polynomial.BitLen() {
		n := uint(remainder.BitLen() - polynomial.BitLen())
		quotient.SetBit(quotient, int(n), 1)
		remainder.Xor(remainder, new(big.Int).Lsh(polynomial, n))
	}
	return quotient, remainder
}

// unreflected returns the polynomial of a word whose given bit is x^0, with higher powers below it.
func unreflected(word uint64, bit int) *big.Int {
	p := new(big.Int)
	for i := range 64 {
		if word>>i&1 != 0 {
			p.SetBit(p, bit-i, 1)
		}
	}
	return p
}

// TestFoldConstants checks that every constant is the remainder of its power of x.
func TestFoldConstants(t *testing.T) {
	// The product of reflected words has an additional factor of x.
	multipliesBy := func(c uint64, n int, what string) {
		_, got := longDivision(new(big.Int).Lsh(unreflected(c, 63), 1))
		_, want := longDivision(powerOfX(n))
		require.Equal(t, want.Text(16), got.Text(16), what)
	}
	const vector = 512
	c := constants
	pair := func(got [2]uint64, n int, what string) {
		multipliesBy(got[0], n+64, what+", low")
		multipliesBy(got[1], n, what+", high")
	}
	pair(c.by1, vector, "by one")
	pair(c.by4, 4*vector, "by four")
	for i := range c.last {
		pair(c.last[i], 4*vector-128*(i+1)+64, "lane "+strconv.Itoa(i))
	}
	quotient, _ := longDivision(powerOfX(96))
	require.Equal(t, quotient.Rsh(quotient, 1).Text(16), unreflected(c.divide[0], 63).Text(16))
	require.Equal(t, polynomial.Text(16), unreflected(c.divide[1], 32).Text(16))
}
