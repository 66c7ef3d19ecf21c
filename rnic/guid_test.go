package rnic

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNodeGUID checks that the GUID is that of the address, port and slot, and no other's.
func TestNodeGUID(t *testing.T) {
	require.Equal(t, uint64(0x0203_12b7_0a4d0001), nodeGUID(netip.MustParseAddrPort("10.77.0.1:4791"), 3))
	require.Equal(t, nodeGUID(netip.MustParseAddrPort("10.77.0.1:4791"), 0), nodeGUID(netip.MustParseAddrPort("[::ffff:10.77.0.1]:4791"), 0))
	seen := map[uint64]string{}
	for _, ip := range []string{"10.77.0.1", "10.77.0.2", "2001:db8::1", "2001:db8::2"} {
		for port := uint16(4791); port < 4794; port++ {
			for slot := range 64 {
				at := netip.AddrPortFrom(netip.MustParseAddr(ip), port)
				guid := nodeGUID(at, slot)
				require.Empty(t, seen[guid], at)
				require.Equal(t, uint64(0x02), guid>>56&0x03, "locally administered, not a group")
				seen[guid] = at.String()
			}
		}
	}
}

// TestGUIDAtRestart checks that a device has the GUID that an earlier one at its address had.
func TestGUIDAtRestart(t *testing.T) {
	first := newEnd(t, Options{}).dev
	at, guid := first.Addr(), first.QueryDevice().NodeGUID
	require.NoError(t, first.Close())
	second := newEnd(t, Options{Addr: at}).dev
	require.Equal(t, guid, second.QueryDevice().NodeGUID)
}
