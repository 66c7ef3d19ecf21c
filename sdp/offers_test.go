package sdp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLearnOffers checks that one refusal has little effect, and that after more of them the Writes
// without an offer double, until an offer is accepted.
func TestLearnOffers(t *testing.T) {
	c := &Conn{}
	for _, want := range []int{0, 2, 4, 8, 16, 32, 32, 32} {
		c.recordOfferResult(false)
		require.Equal(t, want, c.offersToSkip)
	}
	c.offersToSkip = 0
	c.recordOfferResult(true)
	c.recordOfferResult(false)
	require.Zero(t, c.offersToSkip)
}
