package link

import (
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// linkLocal finds an IPv6 link-local address of this machine, with its zone.
func linkLocal(t *testing.T) netip.Addr {
	interfaces, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		require.NoError(t, err)
		for _, a := range addrs {
			if ip := netip.MustParsePrefix(a.String()).Addr(); ip.Is6() && ip.IsLinkLocalUnicast() && i.Flags&net.FlagUp != 0 {
				return ip.WithZone(i.Name)
			}
		}
	}
	t.Skip("no IPv6 link-local address; interop runs this kind in a network namespace with some")
	return netip.Addr{}
}

// TestLinkLocal sends between links on a link-local address, in every mode. Both forms of a zone
// select the interface, and no reported address has a zone.
func TestLinkLocal(t *testing.T) {
	ip := linkLocal(t)
	ifc, err := net.InterfaceByName(ip.Zone())
	require.NoError(t, err)
	for _, zone := range []string{ifc.Name, strconv.Itoa(ifc.Index)} {
		for _, mode := range modes {
			t.Run(zone+"/"+mode.name, func(t *testing.T) {
				o := Options{Addr: netip.AddrPortFrom(ip.WithZone(zone), 0)}
				mode.set(&o)
				a, b := open(t, o), open(t, o)
				require.Equal(t, ip.WithZone(""), a.LocalAddr().Addr())
				require.Equal(t, ifc.Name, a.Caps().Interface)
				require.Equal(t, ifc.Index, a.Caps().Index)
				require.Equal(t, ifc.MTU, a.Caps().MTU)
				batch, r := NewBatch(4096), NewDatagrams(4)
				fill(batch.Next(pathTo(b), 100), 0)
				require.NoError(t, a.WriteBatch(batch))
				g := receive(t, b, r, 1)[0]
				require.Equal(t, a.LocalAddr(), r.Msgs()[0].Src)
				sealer := wire.NewICRC(a.LocalAddr(), b.LocalAddr())
				check, _ := sealer.Check(g.pkt, 0)
				require.Equal(t, wire.ICRCExact, check)
			})
		}
	}
}

// TestLinkLocalWithoutZone checks that the error proposes an address that works.
func TestLinkLocalWithoutZone(t *testing.T) {
	ip := linkLocal(t)
	_, err := OpenUDP(Options{Addr: netip.AddrPortFrom(ip.WithZone(""), 0)})
	require.ErrorContains(t, err, "needs its interface, as in "+ip.WithZone("").String()+"%")
	_, err = OpenUDP(Options{Addr: netip.AddrPortFrom(ip.WithZone("nosuch0"), 0)})
	require.ErrorContains(t, err, "needs its interface")
}

func TestNormalizeBind(t *testing.T) {
	list, err := net.Interfaces()
	require.NoError(t, err)
	lo := list[0]
	for given, want := range map[string]string{
		"192.0.2.1":                            "192.0.2.1",
		"::ffff:192.0.2.1":                     "192.0.2.1",
		"::ffff:192.0.2.1%" + lo.Name:          "192.0.2.1",
		"2001:db8::1%" + lo.Name:               "2001:db8::1",
		"::1%1":                                "::1",
		"fe80::1":                              "fe80::1",
		"fe80::1%" + lo.Name:                   "fe80::1%" + lo.Name,
		"fe80::1%" + strconv.Itoa(lo.Index):    "fe80::1%" + lo.Name,
		"fe80::1%nosuch0":                      "fe80::1%nosuch0",
		"fe80::1%" + strconv.Itoa(1<<30):       "fe80::1%" + strconv.Itoa(1<<30),
		"ff02::1%" + strconv.Itoa(lo.Index):    "ff02::1%" + lo.Name,
		"ff0e::1%" + strconv.Itoa(lo.Index):    "ff0e::1",
		"fd00::1%" + strconv.Itoa(1<<30) + "0": "fd00::1",
	} {
		require.Equal(t, netip.MustParseAddr(want), NormalizeBind(netip.MustParseAddr(given)), given)
	}
}
