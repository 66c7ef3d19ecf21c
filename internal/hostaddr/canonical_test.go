package hostaddr

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

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
