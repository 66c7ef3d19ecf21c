package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// TestDelayAck checks that messages of credit-based flow control request no acknowledgement until
// half of the send buffer waits for one.
func TestDelayAck(t *testing.T) {
	_, a, _ := pair(t, flow.Credit)
	for a.core.Write([]byte{1}) > 0 {
	}
	sends := a.core.Sends()
	require.Greater(t, len(sends), 2)
	require.NotZero(t, sends[0].Flags&verbs.SendDelayAck)
	require.Zero(t, sends[len(sends)-1].Flags&verbs.SendDelayAck)
}
