package sdp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestPush: what waits for company leaves when none is likely to come: an event while no
// call is there, or a Read that waits, perhaps for the answer.
func TestPush(t *testing.T) {
	a, _ := newEnds(t, rnic.Options{}, sdp.Options{Design: sdp.NIC}).dial(t)
	for _, by := range []func(*sdp.Conn){sdp.Event, sdp.WaitToRead} {
		before, after := a.HoldBack(by)
		require.Positive(t, before)
		require.Zero(t, after)
	}
	before, after := a.HoldBack(sdp.WaitWhileWriting)
	require.Positive(t, before)
	require.Equal(t, before, after, "more may come")
}
