package experiments

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

func TestZeroCopyShare(t *testing.T) {
	require.Zero(t, sdpbench.Flow{}.ZeroCopyPercent())
	require.InDelta(t, 50, sdpbench.Flow{Bytes: 10, ZeroCopy: 5}.ZeroCopyPercent(), 1e-9)
}
