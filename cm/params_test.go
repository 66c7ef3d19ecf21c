package cm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBufferSizes(t *testing.T) {
	require.Zero(t, decodeBuffer(0))
	require.EqualValues(t, 212992, decodeBuffer(encodeBuffer(212992)))
	require.Equal(t, uint32(1<<22-1)<<10, decodeBuffer(encodeBuffer(1<<32-1)))
	require.Equal(t, uint32(1<<22-1)<<10, decodeBuffer(1<<24-1))
}
