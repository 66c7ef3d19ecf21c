package protocol

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/mad"
)

// TestOnConnect compares the connections between OnConnect and OnRelease with those that the peer
// may hold established.
func TestOnConnect(t *testing.T) {
	type peerConn struct {
		peer                netip.AddrPort
		remoteID, remoteQPN uint32
	}
	list := map[uint32]peerConn{}
	r := newRig(t, Config{
		OnConnect: func(peer netip.AddrPort, id, remoteID, remoteQPN uint32) {
			list[id] = peerConn{peer, remoteID, remoteQPN}
		},
		OnRelease: func(id uint32) {
			require.Contains(t, list, id)
			delete(list, id)
		},
	})
	id := r.requested()
	require.Empty(t, list)
	require.True(t, r.m.Accept(r.now, id, mad.REP{QPN: 600, StartingPSN: 10}))
	r.nextSent(mad.AttrREP)
	require.Equal(t, map[uint32]peerConn{id: {r.peer, 77, 500}}, list, "the RTU may be lost")
	require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: id}))
	require.Len(t, list, 1)
	require.Equal(t, DropNone, r.deliver(1, mad.AttrDREQ, &mad.DREQ{LocalID: 77, RemoteID: id, RemoteQPN: 600}))
	require.Empty(t, list)

	r.m.NextDatagram()
	r.m.NextEvent()
	r.m.NextEvent()
	id, _ = r.replied()
	require.Empty(t, list, "the peer repeats the REP")
	require.True(t, r.m.Ready(id, nil))
	require.Equal(t, map[uint32]peerConn{id: {r.peer, 88, 501}}, list)
	require.True(t, r.m.Disconnect(r.now, id, nil))
	require.Len(t, list, 1, "the DREQ may be lost")
	r.m.Close(r.now)
	require.Empty(t, list)
}
