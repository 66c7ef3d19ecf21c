package rnic

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestAddrForms opens a device with every form of its address, and checks that peers and errors
// have the canonical form.
func TestAddrForms(t *testing.T) {
	for given, want := range map[string]string{
		"127.0.0.1":            "127.0.0.1",
		"::ffff:127.0.0.1":     "127.0.0.1",
		"::ffff:127.0.0.1%any": "127.0.0.1",
		"::1%any":              "::1",
		"::1":                  "::1",
	} {
		for _, o := range []Options{
			{Addr: netip.AddrPortFrom(netip.MustParseAddr(given), 0), AnyPort: true},
			{Addrs: given, AnyPort: true},
		} {
			d, err := Open(o)
			require.NoError(t, err, given)
			require.Equal(t, want, d.Addr().Addr().String(), given)
			gid, err := d.QueryGID(1, 0)
			require.NoError(t, err)
			require.Equal(t, verbs.GIDFromAddr(netip.MustParseAddr(want)), gid.GID)
			port := d.Addr().Port()
			_, err = Open(Options{Addr: netip.AddrPortFrom(netip.MustParseAddr(given), port)})
			require.ErrorContains(t, err, d.Name()+", a device of this process, has this address", given)
			require.NoError(t, d.Close())
		}
	}
	for _, given := range []string{"0.0.0.0", "::", "::ffff:0.0.0.0", "224.0.0.1", "::ffff:224.0.0.1", "ff02::1%lo"} {
		_, err := Open(Options{Addr: netip.AddrPortFrom(netip.MustParseAddr(given), 4791)})
		require.ErrorIs(t, err, verbs.ErrInvalid, given)
	}
}
