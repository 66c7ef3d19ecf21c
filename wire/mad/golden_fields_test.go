package mad_test

import (
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/mad"
)

// firstOfKind returns the first datagram of a kind that Linux, or the probe, sent.
func firstOfKind(t *testing.T, capture string, attr mad.Attr, byLinux bool) (mad.Header, mad.Message) {
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

// TestREQOfLinux checks the fields of a REQ of rping on Linux.
func TestREQOfLinux(t *testing.T) {
	h, body := firstOfKind(t, "cm-rping", mad.AttrREQ, true)
	require.Equal(t, mad.Header{TID: 0x2e1ae08e7, Attr: mad.AttrREQ}, h)
	q := *body.(*mad.REQ)
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

// TestREPOfLinux checks the fields of a REP of rdma_cm on Linux.
func TestREPOfLinux(t *testing.T) {
	h, body := firstOfKind(t, "rping-active", mad.AttrREP, true)
	require.Equal(t, mad.Header{TID: 0x5566, Attr: mad.AttrREP}, h)
	r := *body.(*mad.REP)
	r.PrivateData = nil
	require.Equal(t, mad.REP{
		LocalID: 0xe208aee1, RemoteID: 0x88bf4f44, QPN: 0x18, StartingPSN: 0xbd6ceb, ResponderResources: 1, InitiatorDepth: 1, TargetAckDelay: 15,
		RNRRetry: 7, CAGUID: 0x505400fffe505202,
	}, r)
}

func TestOthersOfLinux(t *testing.T) {
	_, body := firstOfKind(t, "cm-rping", mad.AttrRTU, true)
	rtu := *body.(*mad.RTU)
	require.Equal(t, []uint32{0xe708aee1, 0x11223344}, []uint32{rtu.LocalID, rtu.RemoteID})

	_, body = firstOfKind(t, "cm-rping", mad.AttrDREQ, true)
	dreq := *body.(*mad.DREQ)
	require.Equal(t, []uint32{0xe708aee1, 0x11223344, 0x77}, []uint32{dreq.LocalID, dreq.RemoteID, dreq.RemoteQPN})

	h, body := firstOfKind(t, "rping-active", mad.AttrDREP, true)
	drep := *body.(*mad.DREP)
	require.EqualValues(t, 0x5567, h.TID)
	require.Equal(t, []uint32{0xe208aee1, 0x88bf4f44}, []uint32{drep.LocalID, drep.RemoteID})

	_, body = firstOfKind(t, "sidr-ud-perftest", mad.AttrSIDRReq, true)
	sidr := *body.(*mad.SIDRReq)
	require.Equal(t, mad.ServiceIDOf(mad.PortSpaceUDP, 18515), sidr.ServiceID)
	require.EqualValues(t, 0xffff, sidr.PKey)
	cma, ok := mad.ParseCMAHeader(sidr.PrivateData)
	require.True(t, ok)
	require.Equal(t, netip.MustParseAddr("198.51.100.2"), cma.Src.Addr())
}

// readDatagram reads a datagram of testdata, whose first line has its source.
func readDatagram(t *testing.T, name string) (b []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		part, err := hex.DecodeString(strings.TrimSpace(line))
		require.NoError(t, err)
		b = append(b, part...)
	}
	return b
}

// TestMoreOfLinux checks the fields of messages of Linux that the captures do not contain.
func TestMoreOfLinux(t *testing.T) {
	for _, c := range []struct {
		name string
		tid  uint64
		attr mad.Attr
		want func(body mad.Message)
	}{
		{"mra", 0xf7f6cdd4dc398e1f, mad.AttrMRA, func(body mad.Message) {
			m := *body.(*mad.MRA)
			require.Equal(t, []uint32{0x866d129d, 0x07c0e1f8}, []uint32{m.LocalID, m.RemoteID})
			require.Equal(t, mad.KindREQ, m.Message)
			require.EqualValues(t, 24, m.ServiceTimeout)
		}},
		{"rej", 0x962dd12c5acd2d80, mad.AttrREJ, func(body mad.Message) {
			m := *body.(*mad.REJ)
			require.Equal(t, []uint32{0, 0x56659a19}, []uint32{m.LocalID, m.RemoteID})
			require.Equal(t, mad.KindREQ, m.Message)
			require.Equal(t, mad.RejInvalidServiceID, m.Reason)
			require.Empty(t, m.Info)
		}},
		{"sidr-rep", 0x2d6f66741ac5c9ca, mad.AttrSIDRRep, func(body mad.Message) {
			m := *body.(*mad.SIDRRep)
			require.Equal(t, []uint32{0x0bea9791, 0x1e1, mad.UDPQKey}, []uint32{m.RequestID, m.QPN, m.QKey})
			require.Equal(t, mad.SIDRSuccess, m.Status)
			require.Equal(t, mad.ServiceIDOf(mad.PortSpaceUDP, 7174), m.ServiceID)
		}},
		{"req-ipv6", 0x29d126d84, mad.AttrREQ, func(body mad.Message) {
			m := *body.(*mad.REQ)
			require.Equal(t, []uint32{0x846d129d, 0x1e2, 0x38fd49}, []uint32{m.LocalID, m.QPN, m.StartingPSN})
			require.Equal(t, mad.Path{
				LocalLID: mad.LIDPermissive, RemoteLID: mad.LIDPermissive, FlowLabel: 0x8e575, HopLimit: 64, AckTimeout: 19,
				LocalGID: netip.MustParseAddr("2001:db8::2").As16(), RemoteGID: netip.MustParseAddr("2001:db8::1").As16(),
			}, m.Primary)
			h, ok := mad.ParseCMAHeader(m.PrivateData)
			require.True(t, ok)
			require.Equal(t, mad.CMAHeader{
				Src: netip.MustParseAddrPort("[2001:db8::2]:52401"), Dst: netip.MustParseAddr("2001:db8::1"),
			}, h)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := readDatagram(t, c.name)
			h, body, drop := mad.Parse(b)
			require.Equal(t, mad.DropNone, drop)
			require.Equal(t, mad.Header{TID: c.tid, Attr: c.attr}, h)
			c.want(body)
			var again [mad.Size]byte
			mad.Put(&again, h, body)
			require.Equal(t, b, again[:])
		})
	}
}
