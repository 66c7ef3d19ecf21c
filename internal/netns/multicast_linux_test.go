package netns_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/netns"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestMulticastIPv6 sends to groups of IPv6 from one end of a cable. Two devices at the other end have joined. The devices
// have link-local addresses, or global ones.
func TestMulticastIPv6(t *testing.T) {
	a, b := netns.NewTest(t), netns.NewTest(t)
	ipA, ipB := netns.ConnectTestVeth(a, b, "cable0")
	a.IP("addr add fd00::a/64 dev cable0 nodad")
	b.IP("addr add fd00::b/64 dev cable0 nodad")
	at := func(ns *netns.TestNamespace, addr netip.Addr, port uint16) site {
		return site{ns, netip.AddrPortFrom(addr, port)}
	}
	global := [2]netip.Addr{netip.MustParseAddr("fd00::a"), netip.MustParseAddr("fd00::b")}
	for name, addrs := range map[string][2]netip.Addr{"link-local": {ipA, ipB}, "global": global} {
		for _, group := range []string{"ff02::4791", "ff15::4791"} {
			t.Run(name+"/"+group, func(t *testing.T) {
				from := at(a, addrs[0], 4791).open(t, rnic.Options{})
				members := []*end{at(b, addrs[1], 4791).open(t, rnic.Options{}), at(b, addrs[1], 4792).open(t, rnic.Options{})}
				g := verbs.GIDFromAddr(netip.MustParseAddr(group))
				for _, e := range members {
					q := e.qp(t, verbs.UD)
					require.NoError(t, verbs.ActivateUD(q, 7, 0))
					e.recv(t, q)
					var err error
					b.Do(func() { err = q.AttachMcast(g) })
					require.NoError(t, err)
				}
				ah, err := from.pd.CreateAH(verbs.AHAttr{DGID: g})
				require.NoError(t, err)
				q := from.qp(t, verbs.UD)
				require.NoError(t, verbs.ActivateUD(q, 7, 0))
				copy(from.mr.Bytes(), "to a group")
				_, err = q.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{from.mr.SGE(0, 10)},
					AH: ah, RemoteQPN: wire.QPNMulticast, RemoteQKey: 7}})
				require.NoError(t, err)
				from.next(t)
				for _, e := range members {
					wc := e.next(t)
					require.Equal(t, q.Num(), wc.SrcQPN)
					require.Equal(t, "to a group", string(e.mr.Bytes()[40:50]))
				}
			})
		}
	}
}
