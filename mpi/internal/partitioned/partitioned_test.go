package partitioned_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/partitioned"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// TestAllocations checks that a round after the first allocates nothing but the packet to the own
// rank.
func TestAllocations(t *testing.T) {
	if racesync.Enabled {
		t.Skip("the race detector allocates")
	}
	table, self, err := newSelf()
	require.NoError(t, err)
	recv, err := table.NewRecv(self, datatype.Of(make([]int64, 64)), 4, 0, 7)
	require.NoError(t, err)
	send, err := table.NewSend(self, datatype.Of(make([]int64, 64)), 8, 0, 7)
	require.NoError(t, err)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		if recv.Start() != nil || send.Start() != nil || send.Pready(0, 3) != nil || send.Pready(3, 8) != nil {
			t.Fatal("a call failed")
		}
		if ok, err := recv.Parrived(3); !ok || err != nil {
			t.Fatal("the last partition has not arrived")
		}
		if send.Finish() != nil || recv.Finish() != nil {
			t.Fatal("a round failed")
		}
	}), 1.0)
}

// TestMalformedPackets checks that packets and notices that no correct rank sends are refused, and
// change nothing.
func TestMalformedPackets(t *testing.T) {
	table, self, err := newSelf()
	require.NoError(t, err)
	in := make([]int64, 4)
	recv, err := table.NewRecv(self, datatype.Of(in), 2, 0, 7)
	require.NoError(t, err)
	send, err := table.NewSend(self, datatype.Of([]int64{1, 2, 3, 4}), 2, 0, 7)
	require.NoError(t, err)
	const offer, key, start, refuse = 1, 2, 3, 4
	handle := func(from int, tag int32, id, length uint64, flags envelope.Flags, payload []byte) (err error) {
		h := envelope.Header{Kind: envelope.Active, Context: partitioned.PacketContext, Tag: tag, ID: id, Length: length, Flags: flags}
		self.Engine.Do(func(*protocol.Core) { err = table.HandlePacket(from, &h, payload) })
		return err
	}
	notify := func(number uint32) (err error) {
		self.Engine.Do(func(*protocol.Core) { err = table.HandleNotify(0, partitioned.NoticeFlag|number) })
		return err
	}
	big := make([]byte, envelope.KeySize)
	(&envelope.Key{ID: 1<<31 - 1}).MarshalTo(big)
	partitions := func(n byte) []byte { return append([]byte{2, 0, 0, 0, 9, 0, 0, 0, n, 0, 0, 0}, make([]byte, 8)...) }
	for name, err := range map[string]error{
		"a short offer":                  handle(0, offer, 5, 8, 0, make([]byte, 19)),
		"an offer of no partitions":      handle(0, offer, 5, 8, 0, partitions(0)),
		"an offer that is not divisible": handle(0, offer, 5, 8, 0, partitions(3)),
		"a start before the key":         handle(0, start, 1, 0, 0, nil),
		"a short key":                    handle(0, key, 1, 0, 0, make([]byte, 23)),
		"a key beyond the numbers":       handle(0, key, 1, 0, 0, big),
		"a key that cannot be written":   handle(0, key, 1, 0, envelope.ByWrite, make([]byte, envelope.KeySize)),
		"a refusal of a fit":             handle(0, refuse, 1, 32, 0, make([]byte, 8)),
		"a short refusal":                handle(0, refuse, 1, 32, 0, nil),
		"an unknown packet":              handle(0, 9, 1, 0, 0, nil),
		"an unknown send":                handle(0, start, 2, 0, 0, nil),
		"a send to another rank":         handle(1, start, 1, 0, 0, nil),
		"a notice of no receive":         notify(2),
		"a notice before the start":      notify(1),
	} {
		require.ErrorIs(t, err, protocol.ErrProtocol, name)
	}
	require.NoError(t, recv.Start())
	require.NoError(t, send.Start())
	require.NoError(t, send.Pready(0, 2))
	require.NoError(t, send.Finish())
	require.NoError(t, recv.Finish())
	require.Equal(t, []int64{1, 2, 3, 4}, in)
	require.ErrorIs(t, handle(0, key, 1, 0, 0, make([]byte, envelope.KeySize)), protocol.ErrProtocol, "a second key")
	require.NoError(t, recv.Start())
	require.ErrorIs(t, handle(0, start, 1, 0, 0, nil), protocol.ErrProtocol, "two rounds ahead")
	send.Free()
	require.NoError(t, handle(0, start, 1, 0, 0, nil), "of a send that was freed")
}
