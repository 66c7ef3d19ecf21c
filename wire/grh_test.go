package wire_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// TestPutGRHAgainstGoldenPackets uses two golden packets with the values that PutGRH assumes
// (identification or flow label 0, hop limit 64), and compares the restored IP header.
func TestPutGRHAgainstGoldenPackets(t *testing.T) {
	for _, name := range []string{"rc-compare-swap-operands", "rc-send-only-ipv6"} {
		d := open(t, golden(t, name))
		b := bytes.Repeat([]byte{0xAA}, wire.GRHLen+1)
		wire.PutGRH(b, d.src.Addr(), d.dst.Addr(), 0, wire.UDPLen+len(d.pkt))
		zeros := make([]byte, wire.GRHLen-len(d.ip))
		require.Equal(t, append(zeros, d.ip...), b[:wire.GRHLen], name)
		require.EqualValues(t, 0xAA, b[wire.GRHLen])

		src, dst, tos, ok := wire.ParseGRH(b)
		require.True(t, ok)
		require.Equal(t, []any{d.src.Addr(), d.dst.Addr(), uint8(0)}, []any{src, dst, tos})
	}
}

// TestPutGRHAgainstGopacket compares with an IPv4 header of another library, including the
// checksum.
func TestPutGRHAgainstGopacket(t *testing.T) {
	src, dst := netip.MustParseAddr("203.0.113.250"), netip.MustParseAddr("239.255.255.254")
	for tos := range 256 {
		buf := gopacket.NewSerializeBuffer()
		payload := make([]byte, 300+tos)
		require.NoError(t, gopacket.SerializeLayers(buf,
			gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
			&layers.IPv4{
				Version: 4, TOS: uint8(tos), Flags: layers.IPv4DontFragment, TTL: 64,
				Protocol: layers.IPProtocolUDP, SrcIP: src.AsSlice(), DstIP: dst.AsSlice(),
			},
			gopacket.Payload(payload)))
		b := make([]byte, wire.GRHLen)
		wire.PutGRH(b, src, dst, uint8(tos), len(payload))
		require.Equal(t, buf.Bytes()[:wire.IPv4Len], b[wire.GRHLen-wire.IPv4Len:])
		_, _, got, ok := wire.ParseGRH(b)
		require.True(t, ok)
		require.EqualValues(t, tos, got)
	}
}

func TestGRHTrafficClassIPv6(t *testing.T) {
	src, dst := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("ff0e::1")
	b := make([]byte, wire.GRHLen)
	for tos := range 256 {
		wire.PutGRH(b, src, dst, uint8(tos), 100)
		gotSrc, gotDst, got, ok := wire.ParseGRH(b)
		require.True(t, ok)
		require.Equal(t, []any{src, dst, uint8(tos)}, []any{gotSrc, gotDst, got})
	}
}

// TestGRHOfMappedAddress checks that an address in IPv4-mapped form, as from a dual-stack socket,
// is an IPv4 address.
func TestGRHOfMappedAddress(t *testing.T) {
	plain, mapped := make([]byte, wire.GRHLen), make([]byte, wire.GRHLen)
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	wire.PutGRH(plain, a, b, 1, 100)
	wire.PutGRH(mapped, netip.AddrFrom16(a.As16()), netip.AddrFrom16(b.As16()), 1, 100)
	require.Equal(t, plain, mapped)
}

func TestParseGRHOfGarbage(t *testing.T) {
	for _, b := range [][]byte{nil, make([]byte, wire.GRHLen-1), make([]byte, wire.GRHLen), bytes.Repeat([]byte{0xFF}, 64)} {
		_, _, _, ok := wire.ParseGRH(b)
		require.False(t, ok)
	}
}
