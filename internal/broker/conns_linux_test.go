package broker

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

// TestConns compares the connections of slots in the table with a model.
func TestConns(t *testing.T) {
	table, err := newTable()
	require.NoError(t, err)
	defer table.close()
	rapid.Check(t, func(t *rapid.T) {
		m := &Member{g: &group{table: table}, slot: rapid.IntRange(0, Slots-1).Draw(t, "slot")}
		table.clearSlot(m.slot)
		want := map[uint32]conn{}
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			id := rapid.Uint32Range(1, 20).Draw(t, "ID")
			if rapid.Bool().Draw(t, "add") {
				c := conn{id: id, remoteID: rapid.Uint32().Draw(t, "peer's ID"), remoteQPN: rapid.Uint32Max(wire.QPNMask).Draw(t, "QPN"),
					peer: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(id)}), uint16(id))}
				m.AddConn(c.peer, c.id, c.remoteID, c.remoteQPN)
				want[id] = c
			} else {
				m.RemoveConn(id)
				delete(want, id)
			}
			var list []conn
			for _, c := range want {
				list = append(list, c)
			}
			require.ElementsMatch(t, list, table.connsOf(m.slot))
			require.Empty(t, table.connsOf((m.slot+1)%Slots))
		}
		m.closeConns()
		table.clearSlot(m.slot)
		m.AddConn(netip.AddrPort{}, 1, 1, 1)
		require.Empty(t, table.connsOf(m.slot))
	})
}

// TestConnsFull checks that connections beyond the limit are ignored.
func TestConnsFull(t *testing.T) {
	table, err := newTable()
	require.NoError(t, err)
	defer table.close()
	m := &Member{g: &group{table: table}, slot: Slots - 1}
	peer := netip.MustParseAddrPort("[2001:db8::1]:4791")
	for id := range uint32(maxConns + 1) {
		m.AddConn(peer, id+1, id+2, id+3)
	}
	require.Len(t, table.connsOf(m.slot), maxConns)
	m.RemoveConn(maxConns + 1)
	m.RemoveConn(5)
	m.AddConn(peer, maxConns+2, 7, 8)
	list := table.connsOf(m.slot)
	require.Len(t, list, maxConns)
	require.Contains(t, list, conn{maxConns + 2, 7, 8, peer})
}

// TestDREQ parses the packet that disconnects a connection.
func TestDREQ(t *testing.T) {
	for _, from := range []string{"192.0.2.1:4791", "192.0.2.1:4800", "[2001:db8::1]:4791"} {
		src := netip.MustParseAddrPort(from)
		c := conn{id: 1 << 31, remoteID: 2, remoteQPN: 3, peer: netip.AddrPortFrom(src.Addr().Next(), 4791)}
		raw := appendDREQ(nil, src, c)
		var p wire.Packet
		require.Equal(t, wire.DropNone, p.Parse(raw))
		require.EqualValues(t, wire.QPNGSI, p.BTH.DestQPN)
		require.Equal(t, wire.DETH{QKey: wire.QKeyGSI, SrcQPN: wire.QPNGSI}, p.DETH())
		sealer := wire.NewICRC(src, c.peer)
		result, _ := sealer.Check(raw, 0)
		require.Equal(t, wire.ICRCExact, result)
		h, m, drop := mad.Parse(raw[madOffset : len(raw)-wire.ICRCLen])
		require.Equal(t, mad.DropNone, drop)
		want := uint16(0)
		if src.Port() != 4791 {
			want = src.Port()
		}
		require.Equal(t, want, h.UDPPort)
		dreq, ok := m.(*mad.DREQ)
		require.True(t, ok)
		require.Equal(t, [3]uint32{c.id, c.remoteID, c.remoteQPN}, [3]uint32{dreq.LocalID, dreq.RemoteID, dreq.RemoteQPN})
	}
}
