package rdm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/counters"
	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/rdm"
)

// TestStatsFollowProtocol checks that Dropped has the reasons of the protocol, in their order.
func TestStatsFollowProtocol(t *testing.T) {
	i := 0
	for name := range counters.All(rdm.Dropped{}) {
		require.Equal(t, nack.Drops()[i].String(), name)
		i++
	}
}
