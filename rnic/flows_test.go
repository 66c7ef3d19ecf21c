package rnic

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// TestFlowsOfPredictablePeers handles packets of peers that choose the IPv4 identification in
// several ways.
func TestFlowsOfPredictablePeers(t *testing.T) {
	src, dst := netip.MustParseAddrPort("192.0.2.1:4791"), netip.MustParseAddrPort("192.0.2.2:4791")
	seal := wire.NewICRC(src, dst)
	packet := func(id uint16) []byte {
		p := make([]byte, wire.BTHLen+8+wire.ICRCLen)
		bth := wire.BTH{Opcode: wire.RCSendOnly, DestQPN: 5}
		bth.Put(p)
		seal.Put(p, id)
		return p
	}
	cache := flowCache{local: dst}
	f := cache.get(src)
	require.Same(t, f, cache.get(src))

	// Linux: a random one each time.
	for i := range 200 {
		require.NotEqual(t, wire.ICRCBad, f.checkICRC(packet(uint16(0x3000+i)), 0))
	}
	// A softrnic: the position in a group, which receive offload may have divided differently.
	for i := range 200 {
		require.NotEqual(t, wire.ICRCBad, f.checkICRC(packet(uint16(i%64)), uint16(i%7)))
	}
	// Corruption that another identification would explain, sometimes.
	for range 10 {
		require.Equal(t, wire.ICRCBad, f.checkICRC(packet(0x1234), 0), "once it is damage")
		require.Equal(t, wire.ICRCExact, f.checkICRC(packet(0), 0))
	}
	// Another peer at the same address loses one packet.
	require.Equal(t, wire.ICRCBad, f.checkICRC(packet(0x4000), 0))
	for i := range 200 {
		require.Equal(t, wire.ICRCMember, f.checkICRC(packet(uint16(0x4001+i)), 0))
	}
	// Plain corruption is detected for all senders.
	p := packet(0)
	p[13] ^= 0xFF
	p[14] ^= 0xFF
	p[15] ^= 0xFF
	require.Equal(t, wire.ICRCBad, f.checkICRC(p, 0))
}
