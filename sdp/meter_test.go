package sdp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/sdp/internal/protocol"
)

// TestMeter checks that a level is weighted by its time, and that of the two buffers of a writer
// the fuller one counts.
func TestMeter(t *testing.T) {
	start := time.Unix(1, 0)
	m := &meter{began: start, since: start, level: protocol.Levels{Send: 100, Receive: 8}}
	require.Equal(t, BufferUse{}, m.average(), "no time has passed")
	m.record(start.Add(time.Second), protocol.Levels{Send: 100, PeerUsed: 400})
	require.Equal(t, BufferUse{time.Second, 100, 8}, m.average())
	m.record(start.Add(3*time.Second), protocol.Levels{Send: 700})
	require.Equal(t, BufferUse{3 * time.Second, 300, 8.0 / 3}, m.average())
	m.record(start.Add(4*time.Second), protocol.Levels{})
	require.Equal(t, BufferUse{4 * time.Second, 400, 2}, m.average())
}
