package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/flow"
)

// TestCredits checks that the credits of the peer count together with the messages that it had
// received.
func TestCredits(t *testing.T) {
	var c flow.Credits
	c.Start(5)
	require.Equal(t, 5, c.Available())
	for n := range uint32(4) {
		require.Equal(t, n+1, c.NextSeq())
	}
	require.Equal(t, 1, c.Available())
	require.True(t, c.Update(4, 2))
	require.Equal(t, 2, c.Available(), "4, and two of ours were on their way")
	require.True(t, c.Update(9, 1))
	require.Equal(t, 2, c.Available(), "an older word")
	require.True(t, c.Update(7, 2))
	require.Equal(t, 5, c.Available())
	require.False(t, c.Update(9, 5), "message 5 was not sent")
	require.Equal(t, 5, c.Available())
	require.True(t, c.Update(0, 4))
	require.Zero(t, c.Available())
}

// TestDesign checks the names of flow controls, in text and JSON.
func TestDesign(t *testing.T) {
	for name, d := range map[string]flow.Control{"nic": flow.NIC, "rdma": flow.RDMA, "credit": flow.Credit} {
		require.Equal(t, name, d.String())
		text, err := json.Marshal(d)
		require.NoError(t, err)
		require.Equal(t, `"`+name+`"`, string(text))
		var again flow.Control
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, d, again)
	}
	require.Zero(t, flow.NIC, "the default")
	_, err := flow.ParseControl("token")
	require.ErrorContains(t, err, `flow control "token": want nic, rdma or credit`)
	require.Equal(t, "FlowControl(7)", flow.Control(7).String())
}

// TestUncreditedLength checks that messages without returned credit count with their length, not with that of
// their buffers.
func TestUncreditedLength(t *testing.T) {
	var c flow.Credits
	c.Start(4 + flow.ReservedCredits)
	s := flow.NewCreditSender(make([]byte, 4*100), 100, 0, 100, 100, &c)
	require.Zero(t, s.PeerUsed())
	for n := range 4 {
		require.Equal(t, 10, s.Write(make([]byte, 10)))
		_, ok := s.Next()
		require.True(t, ok)
		c.NextSeq()
		require.Equal(t, 10*(n+1), s.PeerUsed())
	}
	s.CompleteUpTo(40)
	require.Equal(t, 40, s.PeerUsed(), "the peer has them")
	require.True(t, c.Update(2+flow.ReservedCredits, 4))
	require.Equal(t, 20, s.PeerUsed())
	require.Equal(t, 30, s.Write(make([]byte, 30)))
	_, ok := s.Next()
	require.True(t, ok)
	c.NextSeq()
	require.Equal(t, 3*(10+10+30)/3, s.PeerUsed())

	c = flow.Credits{}
	c.Start(9)
	r := flow.NewRDMASender(make([]byte, 100), 0, 100, 100, &c)
	r.Write(make([]byte, 60))
	require.Zero(t, r.PeerUsed())
	_, ok = r.Next()
	require.True(t, ok)
	require.Equal(t, 60, r.PeerUsed())
	require.True(t, r.SetFreed(25))
	require.Equal(t, 35, r.PeerUsed())
}
