package cm_test

import (
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// attrs returns the attributes of a queue pair.
func attrs(qp verbs.QP) verbs.QPAttr {
	a, _ := qp.Query()
	return a
}

// TestParametersCross checks that each end's fields become attributes of the other end's queue
// pair.
func TestParametersCross(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	ca, cb := connect(t, a, b, cm.DialOptions{ConnectOptions: verbs.ConnectOptions{
		MTU: verbs.MTU512, AckTimeout: verbs.AckTimeout(15), Retries: 5, RNRRetries: 4, RNRDelay: 30 * time.Microsecond, MaxRdAtomic: 9, MaxDestRdAtomic: 7,
		TrafficClass: 32, SL: 2, FlowLabel: 0xabcde, HopLimit: 33,
	}}, cm.AcceptOptions{ConnectOptions: verbs.ConnectOptions{RNRRetries: 2, RNRDelay: 60 * time.Microsecond, MaxRdAtomic: 3, MaxDestRdAtomic: 4}})
	x, y := attrs(ca.QP()), attrs(cb.QP())

	require.Equal(t, x.RQPSN, y.SQPSN)
	require.Equal(t, x.SQPSN, y.RQPSN)
	require.Equal(t, []uint32{ca.QP().Num(), cb.QP().Num()}, []uint32{y.DestQPN, x.DestQPN})
	require.Equal(t, []verbs.MTU{verbs.MTU512, verbs.MTU512}, []verbs.MTU{x.PathMTU, y.PathMTU})
	require.Equal(t, []uint8{5, 5}, []uint8{x.RetryCnt, y.RetryCnt}, "the REQ's is for both")
	require.Equal(t, []uint8{2, 4}, []uint8{x.RNRRetry, y.RNRRetry}, "the peer's")
	require.Equal(t, []uint8{3, 5}, []uint8{x.MinRNRTimer, y.MinRNRTimer}, "our own")
	require.Equal(t, uint8(15), y.Timeout)
	require.GreaterOrEqual(t, x.Timeout, uint8(15), "the peer's delay counts, too")
	require.Equal(t, []uint8{4, 3}, []uint8{x.MaxRdAtomic, x.MaxDestRdAtomic}, "what the peer granted")
	require.Equal(t, []uint8{3, 4}, []uint8{y.MaxRdAtomic, y.MaxDestRdAtomic})
	for _, c := range []struct {
		at verbs.QPAttr
		to *end
	}{{x, b}, {y, a}} {
		require.Equal(t, verbs.AHAttr{
			DGID: verbs.GIDFromAddr(c.to.m.Addr().Addr()), UDPPort: c.to.m.Addr().Port(), TrafficClass: 32, SL: 2,
			FlowLabel: 0xabcde, HopLimit: 33, PortNum: 1, PeerBuffer: c.at.AV.PeerBuffer, Selective: c.at.AV.Selective,
		}, c.at.AV)
	}
}

// TestDefaults checks the defaults without options.
func TestDefaults(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	ca, cb := connect(t, a, b, cm.DialOptions{}, cm.AcceptOptions{})
	for _, c := range []*cm.Conn{ca, cb} {
		x := attrs(c.QP())
		require.Equal(t, verbs.AccessRemote, x.AccessFlags)
		require.EqualValues(t, 16, x.MaxRdAtomic)
		require.EqualValues(t, 16, x.MaxDestRdAtomic)
		require.EqualValues(t, 7, x.RetryCnt)
		require.EqualValues(t, 7, x.RNRRetry)
		require.EqualValues(t, 12, x.MinRNRTimer)
		require.NotZero(t, x.AV.PeerBuffer, "on a loopback the peer is a softrnic")
		require.True(t, c.Params().FlowControl)
	}
	require.Equal(t, verbs.RC, cb.Params().Transport)
	require.EqualValues(t, b.dev.QueryDevice().NodeGUID, ca.Params().GUID)
}

// TestForeignPeersGetStandardFields checks that another adapter gets the fields that Linux sends, and
// that only softrnic peers, or all with Announce, get the receive buffer.
func TestForeignPeersGetStandardFields(t *testing.T) {
	quiet, loud := newEnd(t, cm.Options{}), newEnd(t, cm.Options{Announce: true})
	far, near := netip.MustParseAddrPort("192.0.2.1:7174"), netip.MustParseAddrPort("127.0.0.9:7174")
	for _, c := range []struct {
		from *end
		addr netip.AddrPort
		port uint16
		told bool
	}{{quiet, far, 0, false}, {quiet, far, 5000, true}, {quiet, near, 0, true}, {loud, far, 0, true}} {
		q := c.from.m.REQ(c.addr, c.from.newQP(t, verbs.RC), cm.DialOptions{UDPPort: c.port})
		require.Equal(t, c.told, q.LocalEECN != 0)
	}
	qp := quiet.newQP(t, verbs.RC)
	q := quiet.m.REQ(far, qp, cm.DialOptions{})
	q.StartingPSN = 0
	require.Equal(t, mad.REQ{
		ServiceID: mad.ServiceIDOf(mad.PortSpaceTCP, 7174), QPN: qp.Num(), ResponderResources: 16, InitiatorDepth: 16,
		RemoteResponseTimeout: 17, LocalResponseTimeout: 17, MaxCMRetries: 15,
		FlowControl: true, RetryCount: 7, RNRRetry: 7, PKey: 0xffff, MTU: uint8(verbs.MTU4096),
		Primary: mad.Path{
			LocalLID: mad.LIDPermissive, RemoteLID: mad.LIDPermissive, LocalGID: verbs.GIDFromAddr(quiet.m.Addr().Addr()),
			RemoteGID: verbs.GIDFromAddr(far.Addr()), HopLimit: 64, AckTimeout: 14,
		},
	}, *q)
}

// TestNoReads checks that a side that serves no reads permits none.
func TestNoReads(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	ca, cb := connect(t, a, b, cm.DialOptions{ConnectOptions: verbs.ConnectOptions{MaxDestRdAtomic: -1}},
		cm.AcceptOptions{ConnectOptions: verbs.ConnectOptions{Access: verbs.AccessRemoteRead}})
	require.Equal(t, verbs.AccessRemoteWrite, attrs(ca.QP()).AccessFlags)
	require.Zero(t, attrs(ca.QP()).MaxDestRdAtomic)
	require.Zero(t, attrs(cb.QP()).MaxRdAtomic)
	require.Equal(t, verbs.AccessRemoteRead, attrs(cb.QP()).AccessFlags, "the option")
	require.EqualValues(t, 16, attrs(ca.QP()).MaxRdAtomic)
}

// TestSmallerMTU checks that a path MTU larger than the peer's is requested again, smaller; a fixed
// one fails.
func TestSmallerMTU(t *testing.T) {
	a := newEnd(t, cm.Options{})
	p := newPuppet(t, a)
	l, err := a.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	q := p.req(l.Addr().Port())
	q.MTU = 6
	p.send(1, mad.AttrREQ, q)
	_, body := p.receive(mad.AttrREJ)
	rej := *body.(*mad.REJ)
	require.Equal(t, mad.RejInvalidMTU, rej.Reason)
	require.Equal(t, []byte{5 << 4}, rej.Info)

	for _, insist := range []verbs.MTU{0, verbs.MTU4096} {
		dialed := make(chan error, 1)
		qp := a.newQP(t, verbs.RC)
		go func() {
			_, err := a.m.Dial(soon(t), netip.AddrPortFrom(p.dev.Addr().Addr(), 7),
				qp, cm.DialOptions{UDPPort: p.dev.Addr().Port(), ConnectOptions: verbs.ConnectOptions{MTU: insist}})
			dialed <- err
		}()
		h, body := p.receive(mad.AttrREQ)
		q := *body.(*mad.REQ)
		require.EqualValues(t, 5, q.MTU)
		p.send(h.TID, mad.AttrREJ, &mad.REJ{RemoteID: q.LocalID, Reason: mad.RejInvalidMTU, Info: []byte{3 << 4}})
		var refused *cm.RejectError
		if insist != 0 {
			require.ErrorAs(t, <-dialed, &refused)
			require.Equal(t, cm.InvalidMTU, refused.Reason)
			continue
		}
		h, body = p.receive(mad.AttrREQ)
		again := *body.(*mad.REQ)
		require.EqualValues(t, 3, again.MTU)
		p.send(h.TID, mad.AttrREP, &mad.REP{LocalID: 5, RemoteID: again.LocalID, QPN: 501, InitiatorDepth: 1, ResponderResources: 2, RNRRetry: 1})
		require.NoError(t, <-dialed)
		x := attrs(qp)
		require.Equal(t, verbs.MTU1024, x.PathMTU)
		require.Equal(t, []uint8{2, 1, 1}, []uint8{x.MaxRdAtomic, x.MaxDestRdAtomic, x.RNRRetry})
		require.Zero(t, x.AV.PeerBuffer, "a REP without a receive buffer")
	}
}

// TestREQBecomesQueuePair checks that the queue pair has the values and the path of the REQ.
func TestREQBecomesQueuePair(t *testing.T) {
	a := newEnd(t, cm.Options{})
	p := newPuppet(t, a)
	l, err := a.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	ch := a.acceptOne(t, l, cm.AcceptOptions{})
	q := p.req(l.Addr().Port())
	q.Alternate.LocalGID[0] = 1
	p.send(1, mad.AttrREQ, q)
	_, body := p.receive(mad.AttrREP)
	rep := *body.(*mad.REP)
	require.Equal(t, []uint8{2, 3}, []uint8{rep.ResponderResources, rep.InitiatorDepth})
	require.EqualValues(t, 1, rep.Failover, "no alternate paths")
	require.Zero(t, rep.LocalEECN, "the REQ had no receive buffer, so the peer is no softrnic")
	p.send(1, mad.AttrRTU, &mad.RTU{LocalID: 77, RemoteID: rep.LocalID})
	got := <-ch
	require.NoError(t, got.err)
	x := attrs(got.conn.QP())
	require.Equal(t, verbs.MTU1024, x.PathMTU)
	require.Equal(t, []uint32{500, 9, rep.StartingPSN}, []uint32{x.DestQPN, x.SQPSN, x.RQPSN})
	require.Equal(t, []uint8{15, 5, 6, 3, 2}, []uint8{x.Timeout, x.RetryCnt, x.RNRRetry, x.MaxRdAtomic, x.MaxDestRdAtomic})
	require.Equal(t, []uint8{8, 9, 3}, []uint8{x.AV.TrafficClass, x.AV.HopLimit, x.AV.SL})
	require.EqualValues(t, 0x12345, x.AV.FlowLabel)
	require.Equal(t, p.dev.Addr().Port(), x.AV.UDPPort)
	require.Zero(t, x.AV.PeerBuffer)
}

// TestUC checks that unreliable connections are requested as such, and accepted only by listeners
// that permit them.
func TestUC(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	ca, cb := connectQP(t, a, b, a.newQP(t, verbs.UC), cm.DialOptions{}, cm.AcceptOptions{})
	require.Equal(t, verbs.UC, cb.Params().Transport)
	require.Equal(t, verbs.StateRTS, ca.QP().State())
	require.NoError(t, cb.Disconnect(soon(t), nil))
	<-ca.Done()

	l, err := b.m.Listen(0, cm.ListenOptions{NoUC: true})
	require.NoError(t, err)
	_, err = a.m.Dial(soon(t), l.Addr(), a.newQP(t, verbs.UC), cm.DialOptions{UDPPort: b.m.Addr().Port()})
	var refused *cm.RejectError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, mad.RejInvalidTransport, refused.Reason)
}

// TestAddresses tests IPv6, and adapters that share an address.
func TestAddresses(t *testing.T) {
	for _, addr := range []string{"::1", "127.0.0.1"} {
		t.Run(addr, func(t *testing.T) {
			at := rnic.Options{Addr: netip.AddrPortFrom(netip.MustParseAddr(addr), 0), AnyPort: true}
			a, b := newEndOn(t, at, cm.Options{}), newEndOn(t, at, cm.Options{})
			require.Equal(t, a.m.Addr().Addr(), b.m.Addr().Addr())
			require.NotEqual(t, a.m.Addr().Port(), b.m.Addr().Port())
			ca, cb := connect(t, a, b, cm.DialOptions{}, cm.AcceptOptions{})
			require.Equal(t, addr, cb.RemoteAddr().Addr().String())
			require.Equal(t, a.m.Addr(), cb.RemoteAdapter())
			require.NoError(t, ca.Disconnect(soon(t), nil))
			<-cb.Done()
		})
	}
}

// TestOwnPeer checks that a device can be its own peer.
func TestOwnPeer(t *testing.T) {
	a := newEnd(t, cm.Options{})
	ca, cb := connect(t, a, a, cm.DialOptions{}, cm.AcceptOptions{})
	require.Equal(t, ca.LocalAddr(), cb.RemoteAddr())
	require.NoError(t, ca.Disconnect(soon(t), nil))
	<-cb.Done()
}

// TestIBPortSpace checks that the port space of InfiniBand has the header for IP addresses.
func TestIBPortSpace(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(9, cm.ListenOptions{PortSpace: cm.IB})
	require.NoError(t, err)
	ch := b.acceptOne(t, l, cm.AcceptOptions{})
	c, err := a.dial(t, b, l.Addr(), cm.DialOptions{PortSpace: cm.IB, PrivateData: []byte("hello")})
	require.NoError(t, err)
	got := <-ch
	require.NoError(t, got.err)
	require.Equal(t, "hello", string(got.conn.PrivateData()[:5]))
	require.Equal(t, c.LocalAddr(), got.conn.RemoteAddr())
}

// TestEngines establishes connections with every configuration of the device's engine.
func TestEngines(t *testing.T) {
	engines := map[string]rnic.Options{"no service": {NoService: true}, "portable": {Portable: true}, "one by one": {NoGSO: true, NoGRO: true, NoMMsg: true}}
	if runtime.GOOS == "linux" && os.Getenv(rnic.EnvLink) == "" {
		engines["shards"] = rnic.Options{Shards: 3}
	}
	for name, o := range engines {
		t.Run(name, func(t *testing.T) {
			a, b := newEndOn(t, o, cm.Options{}), newEndOn(t, o, cm.Options{})
			ca, cb := connect(t, a, b, cm.DialOptions{}, cm.AcceptOptions{})
			require.NoError(t, ca.Disconnect(soon(t), nil))
			<-cb.Done()
		})
	}
}

// TestSelectiveIsNegotiated checks that two ends agree on selective retransmission if both offer it,
// and that nothing is different towards a peer that does not.
func TestSelectiveIsNegotiated(t *testing.T) {
	with, without := newEnd(t, cm.Options{}), newEndOn(t, rnic.Options{NoSelective: true}, cm.Options{})
	for _, c := range []struct {
		from, to *end
		want     bool
	}{{with, with, true}, {with, without, false}, {without, with, false}, {without, without, false}} {
		ca, cb := connect(t, c.from, c.to, cm.DialOptions{}, cm.AcceptOptions{})
		for _, conn := range []*cm.Conn{ca, cb} {
			require.Equal(t, c.want, conn.Params().Selective)
			require.Equal(t, c.want, attrs(conn.QP()).AV.Selective)
			require.NotZero(t, attrs(conn.QP()).AV.PeerBuffer)
		}
	}
	far := netip.MustParseAddrPort("192.0.2.1:7174")
	require.Zero(t, with.m.REQ(far, with.newQP(t, verbs.RC), cm.DialOptions{}).RemoteEECN)
}
