package wire_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

func TestSyndromeKinds(t *testing.T) {
	for s := range 256 {
		got := wire.Syndrome(s)
		want := wire.KindReserved
		switch {
		case s < 0x20:
			want = wire.KindAck
			require.Equal(t, got, wire.AckSyndrome(uint8(s)))
		case s < 0x40:
			want = wire.KindRNR
			require.Equal(t, got, wire.RNRSyndrome(uint8(s-0x20)))
		case s >= 0x60 && s < 0x80:
			want = wire.KindNAK
		}
		require.Equal(t, want, got.Kind(), "0x%02x", s)
		require.EqualValues(t, s%32, got.Value())
		require.NotEmpty(t, got.String())
	}
	require.Equal(t, "reserved syndrome 0x40", wire.Syndrome(0x40).String())
	require.Equal(t, "NAK reserved reason 5", wire.Syndrome(0x65).String())
}

// TestCreditTable checks that the codes grow alternately by a half and by a third.
func TestCreditTable(t *testing.T) {
	want := []int{0, 1, 2, 3, 4}
	for n := 6; n <= 24576; n *= 2 {
		want = append(want, n, n/3*4)
	}
	require.Len(t, want, 31)
	for code, n := range want {
		got, unlimited := wire.Credits(uint8(code))
		require.Equal(t, n, got, "code %d", code)
		require.False(t, unlimited)
		require.EqualValues(t, code, wire.CreditCode(n))
	}
	n, unlimited := wire.Credits(wire.CreditUnlimited)
	require.True(t, unlimited)
	require.Equal(t, math.MaxInt, n)
}

// TestCreditCodeRoundsDown checks that CreditCode returns the largest code that does not exceed the
// credits.
func TestCreditCodeRoundsDown(t *testing.T) {
	slow := func(n int) (best uint8) {
		for code := range uint8(wire.CreditUnlimited) {
			if c, _ := wire.Credits(code); c <= n {
				best = code
			}
		}
		return best
	}
	for n := range 50_000 {
		require.Equal(t, slow(n), wire.CreditCode(n), n)
	}
	require.EqualValues(t, 30, wire.CreditCode(math.MaxInt))
	require.EqualValues(t, 0, wire.CreditCode(-1))
}

// rnrMillis has the milliseconds by code, as in <infiniband/verbs.h> and the kernel.
var rnrMillis = [32]float64{
	655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12,
	0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92,
	2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72,
	40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
}

func TestRNRTable(t *testing.T) {
	for code, ms := range rnrMillis {
		require.Equal(t, int64(math.Round(ms*1e6)), wire.RNRNanos(uint8(code)), "code %d", code)
	}
}
