package reliability

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestReceiverAgainstModel compares Receiver with positions that do not wrap: packets are accepted
// in order, and each gap causes one NAK until the expected packet arrives.
func TestReceiverAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Receiver
		r.Reset(at(0))
		expected, nakked, msn := 0, false, uint32(0)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			require.Equal(t, at(expected), r.Expected())
			require.Equal(t, msn, r.MSN())
			pos := expected + rapid.IntRange(-3, 3).Draw(t, "position")
			got := r.Classify(at(pos))
			switch {
			case pos < expected:
				require.Equal(t, Duplicate, got)
			case pos > expected && nakked:
				require.Equal(t, RepeatedGap, got)
			case pos > expected:
				require.Equal(t, Gap, got)
				nakked = true
			default:
				require.Equal(t, InOrder, got)
				nakked = false
				if rapid.IntRange(0, 3).Draw(t, "refused") == 0 {
					r.OnRNRNAK()
					nakked = true // the RNR NAK applies to later packets as well
					continue
				}
				n := rapid.IntRange(1, 5).Draw(t, "packets")
				r.Advance(n)
				expected += n
				if rapid.Bool().Draw(t, "last") {
					r.CompleteMessage()
					msn++
				}
			}
		}
	})
}

// TestReceiverHalves checks that half of all PSNs are before the expected one, half after it.
func TestReceiverHalves(t *testing.T) {
	var r Receiver
	r.Reset(5)
	require.Equal(t, Duplicate, r.Classify(5+1<<23))
	require.Equal(t, Gap, r.Classify(5+1<<23-1))
}

// TestMSNWraps checks that the MSN has 24 bits.
func TestMSNWraps(t *testing.T) {
	r := Receiver{msn: 0xffffff}
	r.CompleteMessage()
	require.Zero(t, r.MSN())
	r.CompleteMessage()
	r.Reset(1)
	require.Zero(t, r.MSN())
}
