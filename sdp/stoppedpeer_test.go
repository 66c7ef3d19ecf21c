package sdp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestStoppedPeer checks that a connection survives a peer that is stopped for some seconds,
// unless its keepalive is short.
func TestStoppedPeer(t *testing.T) {
	for keepAlive, timeout := range map[time.Duration]uint8{DefaultKeepAlive: 16, -1: 16, 10 * time.Second: 16, 3 * time.Second: 14} {
		require.Equal(t, verbs.AckTimeout(timeout), connectOptions(newKeepAlive(keepAlive)).AckTimeout, "%v", keepAlive)
	}
}
