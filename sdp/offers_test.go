package sdp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// One refusal says little; after more the Writes that make no offer are twice as many each time,
// until one is wanted.
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
