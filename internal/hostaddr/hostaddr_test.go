package hostaddr

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOwnAddressesAreIsOwn(t *testing.T) {
	own, err := Own()
	require.NoError(t, err)
	require.NotEmpty(t, own)
	for _, ip := range own {
		require.True(t, IsOwn(ip), ip)
		require.Equal(t, ip.Is6() && ip.IsLinkLocalUnicast(), ip.Zone() != "", ip)
		if p, err := ip.Prefix(ip.BitLen()); err == nil && ip.Zone() == "" {
			list, err := Entry{Prefix: p}.Addrs()
			require.NoError(t, err)
			require.Equal(t, []netip.Addr{ip}, list)
		}
	}
	for _, text := range []string{"203.0.113.1", "2001:db8::1", "0.0.0.0", "::", "224.0.0.1"} {
		require.False(t, IsOwn(netip.MustParseAddr(text)), text)
	}
	require.False(t, IsOwn(netip.Addr{}))
}

func TestTowardOwnAddress(t *testing.T) {
	from, err := Toward(netip.MustParseAddr("127.0.0.1"))
	require.NoError(t, err)
	require.True(t, from.IsLoopback())
	_, err = Toward(netip.MustParseAddr("fe80::1%no-such-interface"))
	require.Error(t, err)
}

func TestListsHaveOneForm(t *testing.T) {
	for text, want := range map[string]string{
		" 192.0.2.1 , 192.0.2.2:7":   "192.0.2.1,192.0.2.2:7",
		"192.0.2.0/24:4791-4799":     "192.0.2.0/24:4791-4799",
		"[2001:db8::/64]:4791-4799":  "[2001:db8::/64]:4791-4799",
		"[fe80::1%eth-0]:4791-4799":  "[fe80::1%eth-0]:4791-4799",
		"fe80::1%eth0,[::1]:9-9":     "fe80::1%eth0,[::1]:9",
		"192.0.2.1:0,127.0.0.0/8:9":  "192.0.2.1:0,127.0.0.0/8:9",
		"2001:db8::/64,2001:db8::10": "2001:db8::/64,2001:db8::10",
	} {
		list, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, Join(list))
		again, err := Parse(want)
		require.NoError(t, err)
		require.Equal(t, list, again)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("192.0.2.0/24:4791-4799,[fe80::1%eth0]:1")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(Join(list))
		require.NoError(t, err)
		require.Equal(t, list, again)
	})
}

// TestCanonical tests every form of an address that a program may pass.
func TestCanonical(t *testing.T) {
	for given, want := range map[string]string{
		"192.0.2.1":              "192.0.2.1",
		"::ffff:192.0.2.1":       "192.0.2.1",
		"::ffff:192.0.2.1%eth0":  "192.0.2.1",
		"fe80::1%eth0":           "fe80::1",
		"fe80::1%2":              "fe80::1",
		"fe80::1":                "fe80::1",
		"2001:db8::1%eth0":       "2001:db8::1",
		"ff02::1%eth0":           "ff02::1",
		"::1":                    "::1",
		"::ffff:169.254.1.1":     "169.254.1.1",
		"::192.0.2.1":            "::192.0.2.1", // compatible, not mapped
		"64:ff9b::192.0.2.1%lo0": "64:ff9b::192.0.2.1",
	} {
		got := Canonical(netip.MustParseAddr(given))
		require.Equal(t, netip.MustParseAddr(want), got, given)
		require.Equal(t, got, Canonical(got), "twice")
		at := CanonicalPort(netip.AddrPortFrom(netip.MustParseAddr(given), 4791))
		require.Equal(t, netip.AddrPortFrom(got, 4791), at)
	}
	require.False(t, Canonical(netip.Addr{}).IsValid())
}

// FuzzCanonical compares with a conversion through the 16 bytes of a GID.
func FuzzCanonical(f *testing.F) {
	f.Add("fe80::1%eth0")
	f.Add("::ffff:192.0.2.1")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return
		}
		require.Equal(t, netip.AddrFrom16(a.As16()).Unmap(), Canonical(a))
	})
}
