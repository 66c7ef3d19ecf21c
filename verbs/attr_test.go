package verbs_test

import (
	"encoding"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

func TestGIDForms(t *testing.T) {
	g := verbs.GIDFromAddr(netip.MustParseAddr("192.168.1.2"))
	require.Equal(t, verbs.GID{10: 0xff, 11: 0xff, 12: 192, 13: 168, 14: 1, 15: 2}, g)
	require.Equal(t, "0000:0000:0000:0000:0000:ffff:c0a8:0102", g.String())
	require.Equal(t, netip.MustParseAddr("192.168.1.2"), g.Addr())

	g = verbs.GIDFromAddr(netip.MustParseAddr("fe80::abcd%eth0"))
	require.Equal(t, "fe80:0000:0000:0000:0000:0000:0000:abcd", g.String())
	require.Equal(t, netip.MustParseAddr("fe80::abcd"), g.Addr())
	require.False(t, g.IsZero())
	require.True(t, verbs.GIDFromAddr(netip.IPv6Unspecified()).IsZero())
}

func TestParseGID(t *testing.T) {
	for _, s := range []string{"192.168.1.2", "::ffff:192.168.1.2", "0000:0000:0000:0000:0000:ffff:c0a8:0102", "::FFFF:C0A8:102"} {
		g, err := verbs.ParseGID(s)
		require.NoError(t, err)
		require.Equal(t, "192.168.1.2", g.Addr().String())
		text, err := g.MarshalText()
		require.NoError(t, err)
		var back verbs.GID
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, g, back)
	}
	for _, s := range []string{"", "host", "1.2.3", "10.0.0.1:4791", "fe80::1%eth0"} {
		g := verbs.GID{15: 1}
		require.ErrorIs(t, g.UnmarshalText([]byte(s)), verbs.ErrInvalid, s)
		require.Equal(t, verbs.GID{15: 1}, g)
	}
}

func TestGIDIsMulticast(t *testing.T) {
	for address, want := range map[string]bool{
		"ff0e::ffff:e000:1": true, "ff02::1": true, "224.0.0.1": true, "239.255.255.255": true,
		"fe80::1": false, "223.255.255.255": false, "240.0.0.1": false, "::": false,
	} {
		require.Equal(t, want, verbs.GIDFromAddr(netip.MustParseAddr(address)).Addr().IsMulticast(), address)
	}
}

func TestMTU(t *testing.T) {
	for m := range verbs.MTU(math.MaxUint8) {
		want := map[verbs.MTU]int{1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}[m]
		require.Equal(t, want, m.Bytes())
	}
	for m := verbs.MTU(0); m <= verbs.MTU4096; m++ {
		text, err := m.MarshalText()
		require.NoError(t, err)
		back := verbs.MTU(99)
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, m, back)
	}
	m := verbs.MTU1024
	var _ encoding.TextUnmarshaler = &m
	for _, s := range []string{"", "3", "1500", "01024", "8192", "-1"} {
		require.ErrorIs(t, m.UnmarshalText([]byte(s)), verbs.ErrInvalid, s)
		require.Equal(t, verbs.MTU1024, m)
	}
}

func TestAckTimeout(t *testing.T) {
	require.Zero(t, verbs.AckTimeout(0))
	require.Equal(t, 8192*time.Nanosecond, verbs.AckTimeout(1))
	require.Equal(t, 67108864*time.Nanosecond, verbs.AckTimeout(14))
	require.Equal(t, 8796093022208*time.Nanosecond, verbs.AckTimeout(31), "2 hours 26 minutes, no overflow")
	for code := uint8(1); code < 31; code++ {
		require.Equal(t, 2*verbs.AckTimeout(code), verbs.AckTimeout(code+1))
	}
}

func TestIncRKey(t *testing.T) {
	require.Equal(t, uint32(0x12345601), verbs.IncRKey(0x12345600))
	require.Equal(t, uint32(0x12345600), verbs.IncRKey(0x123456ff), "the index stays")
	require.Equal(t, uint32(0xffffff00), verbs.IncRKey(0xffffffff))
}

func TestIsRecv(t *testing.T) {
	for o := range verbs.WCOpcode(math.MaxUint8) {
		require.Equal(t, o >= verbs.WCRecv, o.IsRecv())
	}
}
