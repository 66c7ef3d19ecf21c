package link

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMulticastBuffer checks that the socket of a group has as much room for packets as that of a device.
func TestMulticastBuffer(t *testing.T) {
	o := Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")}
	group, err := OpenMulticast(o, netip.MustParseAddrPort("239.4.7.92:4791"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, group.Close()) })
	device, err := OpenUDP(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	require.Equal(t, device.Caps().RecvBuffer, group.Caps().RecvBuffer)
}
