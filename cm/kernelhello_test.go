package cm

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/verbs"
)

// TestPackHello checks that a Hello survives the private data of the kernel's requests.
func TestPackHello(t *testing.T) {
	for _, addrs := range [][2]string{{"192.0.2.1", "192.0.2.2"}, {"2001:db8::1", "2001:db8::2"}} {
		src, dst := netip.MustParseAddr(addrs[0]), netip.MustParseAddr(addrs[1])
		h := bsdh.Hello{Version: bsdh.Version, MaxAdverts: 3, Capabilities: bsdh.CapExtendedMaxAdverts, ExtMaxAdverts: 300,
			DesRemRcvSz: 4096, LocalRcvSz: 8192, Bufs: 16, LocalPort: 1234, Src: src, Dst: dst}
		whole := h.Append(nil)
		for i := 92 - 24; i < 92; i++ {
			whole[i] = byte(i) // an extension
		}
		packed, err := packHello(whole)
		require.NoError(t, err)
		require.Len(t, packed, 56)
		got, err := unpackHello(append(packed, 0, 0), netip.AddrPortFrom(src, 1), netip.AddrPortFrom(dst, 2))
		require.NoError(t, err)
		require.Equal(t, whole, got)
	}
	_, err := packHello(make([]byte, 91))
	require.ErrorIs(t, err, verbs.ErrInvalid)
	_, err = unpackHello(make([]byte, 55), netip.AddrPort{}, netip.AddrPort{})
	require.ErrorIs(t, err, verbs.ErrInvalid)
}
