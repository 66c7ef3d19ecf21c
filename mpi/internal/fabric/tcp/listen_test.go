package tcp

import (
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListenAtHostAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	if port == 65535 {
		t.Skip("no port above")
	}
	for _, c := range []struct {
		o     Options
		at    string
		ports bool // the given port or above
	}{
		{Options{}, "127.0.0.1", false},
		{Options{Addrs: "127.0.0.1"}, "127.0.0.1", false},
		{Options{Addrs: "127.0.0.1:4791"}, "127.0.0.1", false}, // the address of the device; several ranks share it
		{Options{Addrs: "127.0.0.0/8"}, "127.0.0.1", false},
		{Options{Addrs: "203.0.113.0/24,203.0.113.7:4791-4799,127.0.0.1"}, "127.0.0.1", false},
		{Options{Addrs: "127.0.0.1:" + strconv.Itoa(port) + "-65535"}, "127.0.0.1", true},
		{Options{Addrs: "203.0.113.7", Listen: "127.0.0.1:0"}, "127.0.0.1", false},
	} {
		l, _, err := c.o.openListener()
		require.NoError(t, err, c.o)
		at := l.Addr().(*net.TCPAddr).AddrPort()
		require.NoError(t, l.Close())
		require.Equal(t, netip.MustParseAddr(c.at), at.Addr(), c.o)
		if c.ports {
			require.Greater(t, int(at.Port()), port)
		}
	}
	for text, want := range map[string]string{
		"203.0.113.7,203.0.113.0/24": "listen at 203.0.113.7,203.0.113.0/24: 203.0.113.7: no interface of this host has this address",
		"nowhere":                    `"nowhere" is not an address`,
		"127.0.0.1:" + strconv.Itoa(port) + "-" + strconv.Itoa(port): "", // the device uses one port, as above
	} {
		o := Options{Addrs: text}
		l, _, err := o.openListener()
		if want == "" {
			require.NoError(t, err)
			require.NoError(t, l.Close())
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

// TestLinkLocalAddressOfOtherHosts checks that a rank publishes a link-local address without its
// zone, which is valid on its host only, and dials with its own.
func TestLinkLocalAddressOfOtherHosts(t *testing.T) {
	f := &Fabric{listener: zoned{}, zone: "no-such-if"}
	require.Equal(t, "[fe80::1]:7", f.advertisedAddress())
	_, err := f.dialAddress(t.Context(), "[fe80::2]:9")
	require.ErrorContains(t, err, "fe80::2%no-such-if]:9")
}

// zoned is a listener with a link-local address.
type zoned struct{ net.Listener }

func (zoned) Addr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 7, Zone: "no-such-if"}
}
