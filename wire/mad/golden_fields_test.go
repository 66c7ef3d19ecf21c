package mad_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/mad"
)

// first returns the first datagram of a kind that Linux, or the probe, sent.
func first(t *testing.T, capture string, attr mad.Attr, byLinux bool) (mad.Header, []byte) {
	t.Helper()
	all, who := datagrams(t, capture)
	for i, b := range all {
		if h, body, _ := mad.Parse(b); h.Attr == attr && who[i] == byLinux {
			return h, body
		}
	}
	t.Fatalf("%s has no %v", capture, attr)
	return mad.Header{}, nil
}

func mapped(s string) [16]byte { return netip.MustParseAddr("::ffff:" + s).As16() }

// What rping of Linux asks for, field by field.
func TestREQOfLinux(t *testing.T) {
	h, body := first(t, "cm-rping", mad.AttrREQ, true)
	require.Equal(t, mad.Header{TID: 0x2e1ae08e7, Attr: mad.AttrREQ}, h)
	q := mad.ParseREQ(body)
	private := q.PrivateData
	q.PrivateData = nil
	require.Equal(t, mad.REQ{
		LocalID: 0xe708aee1, ServiceID: mad.ServiceIDOf(mad.PortSpaceTCP, 7174), CAGUID: 0x505400fffe505202, QPN: 0x17,
		ResponderResources: 1, InitiatorDepth: 1, RemoteResponseTimeout: 20, LocalResponseTimeout: 20, MaxCMRetries: 15,
		StartingPSN: 0xc4d2, RetryCount: 7, RNRRetry: 7, PKey: 0xffff, MTU: 5,
		Primary: mad.Path{
			LocalLID: mad.LIDPermissive, RemoteLID: mad.LIDPermissive, LocalGID: mapped("198.51.100.2"),
			RemoteGID: mapped("198.51.100.1"), FlowLabel: 0x9cb0d, HopLimit: 64, AckTimeout: 19,
		},
	}, q)
	require.Equal(t, "TCP port 7174", q.ServiceID.String())

	cma, ok := mad.ParseCMAHeader(private)
	require.True(t, ok)
	require.Equal(t, mad.CMAHeader{
		Src: netip.MustParseAddrPort("198.51.100.2:54297"), Dst: netip.MustParseAddr("198.51.100.1"),
	}, cma)
	var again [mad.CMAHeaderLen]byte
	cma.Put(again[:])
	require.Equal(t, private[:mad.CMAHeaderLen], again[:])
	for _, b := range private[mad.CMAHeaderLen:] {
		require.Zero(t, b, "rping has no private data of its own")
	}
}

// What rdma_cm of Linux answers, field by field.
func TestREPOfLinux(t *testing.T) {
	h, body := first(t, "rping-active", mad.AttrREP, true)
	require.Equal(t, mad.Header{TID: 0x5566, Attr: mad.AttrREP}, h)
	r := mad.ParseREP(body)
	r.PrivateData = nil
	require.Equal(t, mad.REP{
		LocalID: 0xe208aee1, RemoteID: 0x88bf4f44, QPN: 0x18, StartingPSN: 0xbd6ceb, ResponderResources: 1, InitiatorDepth: 1, TargetAckDelay: 15,
		RNRRetry: 7, CAGUID: 0x505400fffe505202,
	}, r)
}

func TestOthersOfLinux(t *testing.T) {
	_, body := first(t, "cm-rping", mad.AttrRTU, true)
	rtu := mad.ParseRTU(body)
	require.Equal(t, []uint32{0xe708aee1, 0x11223344}, []uint32{rtu.LocalID, rtu.RemoteID})

	_, body = first(t, "cm-rping", mad.AttrDREQ, true)
	dreq := mad.ParseDREQ(body)
	require.Equal(t, []uint32{0xe708aee1, 0x11223344, 0x77}, []uint32{dreq.LocalID, dreq.RemoteID, dreq.RemoteQPN})

	h, body := first(t, "rping-active", mad.AttrDREP, true)
	drep := mad.ParseDREP(body)
	require.EqualValues(t, 0x5567, h.TID)
	require.Equal(t, []uint32{0xe208aee1, 0x88bf4f44}, []uint32{drep.LocalID, drep.RemoteID})

	_, body = first(t, "sidr-ud-perftest", mad.AttrSIDRReq, true)
	sidr := mad.ParseSIDRReq(body)
	require.Equal(t, mad.ServiceIDOf(mad.PortSpaceUDP, 18515), sidr.ServiceID)
	require.EqualValues(t, 0xffff, sidr.PKey)
	cma, ok := mad.ParseCMAHeader(sidr.PrivateData)
	require.True(t, ok)
	require.Equal(t, netip.MustParseAddr("198.51.100.2"), cma.Src.Addr())
}
