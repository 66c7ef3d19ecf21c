package datagram

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAddress(t *testing.T) {
	a := Address{netip.MustParseAddrPort("127.0.0.2:4791"), 0x11, 0x1a2b3c4d, 0x5f, 4096}
	require.Equal(t, "127.0.0.2:4791/11/1a2b3c4d/5f/4096", a.String())
	rapid.Check(t, func(t *rapid.T) {
		ip := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.ByteRange(1, 200), 4, 4).Draw(t, "ip")))
		if rapid.Bool().Draw(t, "IPv6") {
			ip = netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.ByteRange(1, 200), 16, 16).Draw(t, "ip6")))
		}
		a := Address{netip.AddrPortFrom(ip, rapid.Uint16Min(1).Draw(t, "port")), rapid.Uint32Range(1, 1<<24-1).Draw(t, "qpn"), rapid.Uint32().Draw(t, "qkey"),
			rapid.Uint32Range(1, 1<<32-1).Draw(t, "epoch"), rapid.SampledFrom([]int{256, 1024, 4096}).Draw(t, "mtu")}
		back, err := ParseAddress(a.String())
		if ip.IsMulticast() {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, a, back)
	})
	for _, s := range []string{"", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:1/1/1/1", "127.0.0.1:1/1/1/1/4096/1", "127.0.0.1:1/0/1/1/4096", "127.0.0.1:1/1/1/0/4096",
		"127.0.0.1:1/1/1/1/100", "127.0.0.1:1/1/1/x/4096", "127.0.0.1:1/1ffffffff/1/1/4096", "nobody:1/1/1/1/4096", "127.0.0.1:0/1/1/1/4096", "224.0.0.1:1/1/1/1/4096"} {
		_, err := ParseAddress(s)
		require.Error(t, err, s)
	}
}
