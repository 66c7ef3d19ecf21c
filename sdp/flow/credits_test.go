package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/sdp/flow"
)

// What the peer says counts together with what it had received by then.
func TestCredits(t *testing.T) {
	var c flow.Credits
	c.Start(5)
	require.Equal(t, 5, c.Left())
	for n := range uint32(4) {
		require.Equal(t, n+1, c.Send())
	}
	require.Equal(t, 1, c.Left())
	require.True(t, c.Update(4, 2))
	require.Equal(t, 2, c.Left(), "4, and two of ours were on their way")
	require.True(t, c.Update(9, 1))
	require.Equal(t, 2, c.Left(), "an older word")
	require.True(t, c.Update(7, 2))
	require.Equal(t, 5, c.Left())
	require.False(t, c.Update(9, 5), "message 5 was not sent")
	require.Equal(t, 5, c.Left())
	require.True(t, c.Update(0, 4))
	require.Zero(t, c.Left())
}

// Designs have names, in text and JSON.
func TestDesign(t *testing.T) {
	for name, d := range map[string]flow.Design{"nic": flow.NIC, "rdma": flow.RDMA, "credit": flow.Credit} {
		require.Equal(t, name, d.String())
		text, err := json.Marshal(d)
		require.NoError(t, err)
		require.Equal(t, `"`+name+`"`, string(text))
		var again flow.Design
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, d, again)
	}
	require.Zero(t, flow.NIC, "the default")
	_, err := flow.ParseDesign("token")
	require.ErrorContains(t, err, `flow control "token": it is nic, rdma or credit`)
	require.Equal(t, "Design(7)", flow.Design(7).String())
}
