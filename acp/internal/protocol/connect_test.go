package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// TestConnectWords checks that requests and replies are decoded as they were encoded, and that a request is
// not a reply.
func TestConnectWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := protocol.ConnectRequest{SlotSize: rapid.Uint32().Draw(t, "size"), Number: rapid.Uint32().Draw(t, "number"), ID: rapid.Uint16().Draw(t, "id"),
			Imm: rapid.Bool().Draw(t, "imm"), To: uint32(rapid.IntRange(0, protocol.MaxRanks-1).Draw(t, "to"))}
		got, ok := protocol.ParseConnectRequest(q.EncodeWords(), int(q.To))
		require.True(t, ok)
		require.Equal(t, q, got)
		_, ok = protocol.ParseConnectRequest(q.EncodeWords(), int(q.To)+1)
		require.False(t, ok)
		require.Equal(t, protocol.Pending, protocol.StateOf(q.EncodeWords()[1]))

		a := protocol.ConnectReply{State: protocol.Accepted, Control: protocol.GA(rapid.Uint64().Draw(t, "control")),
			Slots: uint32(rapid.IntRange(1, protocol.MaxSlots).Draw(t, "slots")), ID: q.ID}
		require.Equal(t, a, protocol.ParseConnectReply(a.EncodeWords()))
		a.State, a.Control, a.SlotSize = protocol.SizeMismatch, 0, q.SlotSize
		require.Equal(t, a, protocol.ParseConnectReply(a.EncodeWords()))
	})
}

// TestParseAnything parses arbitrary words.
func TestParseAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := [2]uint64{rapid.Uint64().Draw(t, "first"), rapid.Uint64().Draw(t, "second")}
		if q, ok := protocol.ParseConnectRequest(w, int(w[1]>>8&0xffffff)); ok {
			require.Equal(t, w, q.EncodeWords())
		}
		a := protocol.ParseConnectReply(w)
		require.Equal(t, protocol.StateOf(w[1]), a.State)
	})
}

// TestImm checks the encoding of immediate data.
func TestImm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := protocol.Signal(rapid.IntRange(0, 2).Draw(t, "signal"))
		n := rapid.IntRange(0, protocol.MaxSlots).Draw(t, "count")
		id := uint16(rapid.IntRange(0, protocol.MaxRegions-1).Draw(t, "id"))
		gs, gn, gid := protocol.ParseImm(protocol.EncodeImm(s, n, id))
		require.Equal(t, []any{s, n, id}, []any{gs, gn, gid})
	})
}
