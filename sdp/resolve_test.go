package sdp_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestAddresses tests the addresses of package net, with numbers and with names.
func TestAddresses(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{})
	own := e.addr().Addr().String()
	for _, address := range []string{":80", ":http", own + ":0", "0.0.0.0:0", "[::ffff:" + own + "]:0"} {
		l, err := e.b.Listen("tcp", address)
		require.NoError(t, err, address)
		if address == ":http" {
			require.Equal(t, own+":80", l.Addr().String())
			to, err := e.a.Resolve(t.Context(), "tcp", own+address)
			require.NoError(t, err)
			require.Equal(t, l.Addr().(sdp.Addr).AddrPort, to)
		}
		require.NoError(t, l.Close())
	}
	for address, text := range map[string]string{
		"80":             "missing port",
		":65536":         "invalid port",
		":nosuchservice": "unknown port",
		"192.0.2.77:80":  "device address is " + own + ", not 192.0.2.77",
		"localhost:80":   "device address is " + own + ", not 127.0.0.1",
	} {
		_, err := e.b.Listen("sdp", address)
		var op *net.OpError
		require.ErrorAs(t, err, &op, address)
		require.ErrorContains(t, err, text)
	}
	_, err := e.b.Listen("udp", ":0")
	require.ErrorContains(t, err, "unknown network udp")
	_, err = e.a.Dial("udp", own+":80")
	require.ErrorContains(t, err, "unknown network udp")
	_, err = e.a.Dial("sdp", own)
	require.ErrorContains(t, err, "missing port")
}

// TestNames checks that a name resolves to an address of the adapter's family.
func TestNames(t *testing.T) {
	for addr, family := range map[string]string{"127.0.0.1": "ip4", "::1": "ip6"} {
		ip := netip.MustParseAddr(addr)
		dev := device(t, rnic.Options{Addr: netip.AddrPortFrom(ip, 0), AnyPort: true})
		s, err := sdp.New(dev, sdp.Options{})
		require.NoError(t, err)
		to, err := s.Resolve(t.Context(), "sdp", "localhost:http")
		if _, none := net.DefaultResolver.LookupNetIP(t.Context(), family, "localhost"); none != nil {
			require.Error(t, err)
		} else {
			require.NoError(t, err)
			require.Equal(t, ip, to.Addr())
			require.EqualValues(t, 80, to.Port())
		}
		require.NoError(t, s.Close())
	}
}
