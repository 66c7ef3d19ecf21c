package netns_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/netns"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// site is the namespace and address of a device.
type site struct {
	ns *netns.TestNamespace
	at netip.AddrPort
}

// end is a device with one object of each type.
type end struct {
	dev *rnic.Device
	pd  verbs.PD
	cq  verbs.CQ
	mr  verbs.MR
	m   *cm.Manager
}

const access = verbs.AccessLocalWrite | verbs.AccessRemote

func (s site) open(t *testing.T, o rnic.Options) *end {
	t.Helper()
	e := &end{}
	o.Addr = s.at
	var err error
	s.ns.Do(func() { e.dev, err = rnic.Open(o) })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.dev.Close()) })
	require.Equal(t, s.at, e.dev.Addr(), "with zone, to open another")
	gid, err := e.dev.QueryGID(1, 0)
	require.NoError(t, err)
	require.Equal(t, s.at.Addr().WithZone(""), gid.GID.Addr())
	e.pd, err = e.dev.AllocPD()
	require.NoError(t, err)
	e.cq, err = e.dev.CreateCQ(256)
	require.NoError(t, err)
	e.mr, err = e.pd.RegMR(make([]byte, 4096), access)
	require.NoError(t, err)
	e.m, err = cm.New(e.dev, cm.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.m.Close()) })
	return e
}

func (e *end) qp(t *testing.T, typ verbs.QPType) verbs.QP {
	t.Helper()
	a := verbs.QPInitAttr{Type: typ, SendCQ: e.cq, RecvCQ: e.cq, Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1}}
	if typ == verbs.UD {
		a.MaxDatagramRDMA = 4
	}
	q, err := e.pd.CreateQP(a)
	require.NoError(t, err)
	return q
}

// next waits for a completion, which must be successful.
func (e *end) next(t *testing.T) verbs.WC {
	t.Helper()
	var wc [1]verbs.WC
	_, err := e.cq.PollWait(soon(t), wc[:])
	require.NoError(t, err)
	require.NoError(t, wc[0].Err())
	return wc[0]
}

func (e *end) recv(t *testing.T, q verbs.QP) {
	t.Helper()
	_, err := q.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{e.mr.SGE(0, 256)}}})
	require.NoError(t, err)
}

// send sends 8 bytes from end a to end b.
func send(t *testing.T, a, b *end, qa, qb verbs.QP, wr verbs.SendWR) {
	t.Helper()
	b.recv(t, qb)
	wr.Opcode, wr.Flags, wr.SGList = verbs.WRSendWithImm, verbs.SendSignaled, []verbs.SGE{a.mr.SGE(0, 8)}
	_, err := qa.PostSend([]verbs.SendWR{wr})
	require.NoError(t, err)
	a.next(t)
	b.next(t)
}

// linkLocals are the operations that must work between two devices on link-local addresses.
var linkLocals = []struct {
	name string
	test func(t *testing.T, a, b *end)
}{
	{"RC", func(t *testing.T, a, b *end) { connected(t, a, b, verbs.RC) }},
	{"UC", func(t *testing.T, a, b *end) { connected(t, a, b, verbs.UC) }},
	{"UD", func(t *testing.T, a, b *end) {
		qa, qb := a.qp(t, verbs.UD), b.qp(t, verbs.UD)
		require.NoError(t, verbs.ActivateUD(qa, 7, 0))
		require.NoError(t, verbs.ActivateUD(qb, 7, 0))
		ah, err := a.pd.CreateAH(address(t, b))
		require.NoError(t, err)
		send(t, a, b, qa, qb, verbs.SendWR{AH: ah, RemoteQPN: qb.Num(), RemoteQKey: 7})
	}},
	{"RDMA over UD", func(t *testing.T, a, b *end) {
		qa, qb := a.qp(t, verbs.UD), b.qp(t, verbs.UD)
		require.NoError(t, verbs.ActivateUD(qa, 7, 0))
		require.NoError(t, verbs.ActivateUD(qb, 7, 0))
		toB, err := qa.(verbs.DatagramRDMA).CreatePeer(verbs.PeerAttr{AH: address(t, b), QPN: qb.Num(), Access: verbs.AccessRemote})
		require.NoError(t, err)
		toA, err := qb.(verbs.DatagramRDMA).CreatePeer(verbs.PeerAttr{AH: address(t, a), QPN: qa.Num(), Access: verbs.AccessRemote})
		require.NoError(t, err)
		require.NoError(t, toB.Connect(toA.Token()))
		require.NoError(t, toA.Connect(toB.Token()))
		_, err = qa.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled, AH: toB,
			SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
		require.NoError(t, err)
		a.next(t)
	}},
	{"CM", func(t *testing.T, a, b *end) {
		l, err := b.m.Listen(0, cm.ListenOptions{})
		require.NoError(t, err)
		defer l.Close()
		for _, addr := range forms(b, l.Addr().Port()) {
			qa, qb := a.qp(t, verbs.RC), b.qp(t, verbs.RC)
			accepted := make(chan *cm.Conn, 1)
			go func() {
				r, err := l.Accept(soon(t))
				if err != nil {
					close(accepted)
					return
				}
				c, _ := r.Accept(soon(t), qb, cm.AcceptOptions{})
				accepted <- c
			}()
			c, err := a.m.Dial(soon(t), addr, qa, cm.DialOptions{UDPPort: b.dev.Addr().Port()})
			require.NoError(t, err, addr)
			peer := <-accepted
			require.NotNil(t, peer)
			require.Equal(t, l.Addr(), c.RemoteAddr())
			require.Equal(t, c.LocalAddr(), peer.RemoteAddr())
			send(t, a, b, qa, qb, verbs.SendWR{})
			require.NoError(t, c.Disconnect(soon(t), nil))
		}
	}},
	{"SIDR", func(t *testing.T, a, b *end) {
		l, err := b.m.ListenUD(0, cm.ListenOptions{})
		require.NoError(t, err)
		defer l.Close()
		qb, ctx := b.qp(t, verbs.UD), soon(t)
		go func() { // accept every request, also repeated ones
			for {
				r, err := l.Accept(ctx)
				if err != nil {
					return
				}
				_ = r.Accept(cm.UDAcceptOptions{UDQueuePair: cm.UDQueuePair{QP: qb}})
			}
		}()
		for _, addr := range forms(b, l.Addr().Port()) {
			qa := a.qp(t, verbs.UD)
			p, err := a.m.DialUD(soon(t), addr, cm.UDDialOptions{UDQueuePair: cm.UDQueuePair{QP: qa}, UDPPort: b.dev.Addr().Port()})
			require.NoError(t, err, addr)
			require.Equal(t, l.Addr(), p.RemoteAddr)
			ah, err := a.pd.CreateAH(p.AH)
			require.NoError(t, err)
			send(t, a, b, qa, qb, verbs.SendWR{AH: ah, RemoteQPN: p.QPN, RemoteQKey: p.QKey})
		}
	}},
	{"rdm", func(t *testing.T, a, b *end) {
		x, err := rdm.Open(a.dev, rdm.Options{})
		require.NoError(t, err)
		defer x.Close()
		y, err := rdm.Open(b.dev, rdm.Options{})
		require.NoError(t, err)
		defer y.Close()
		there, err := y.Register([]byte("link-local"), access)
		require.NoError(t, err)
		p, err := x.Dial(soon(t), y.Addr())
		require.NoError(t, err)
		mine, err := x.Register(make([]byte, 10), access)
		require.NoError(t, err)
		var op rdm.Op
		require.NoError(t, p.Read(&op, mine.At(0, 10), there.Remote(0)))
		require.NoError(t, op.Wait(soon(t)))
		require.Equal(t, "link-local", string(mine.Bytes()))
		require.NoError(t, p.Send(soon(t), []byte("message")))
		buf := make([]byte, y.MaxMessage())
		n, _, err := y.Recv(soon(t), buf)
		require.NoError(t, err)
		require.Equal(t, "message", string(buf[:n]))
	}},
	{"SDP", func(t *testing.T, a, b *end) {
		x, y := stacks(t, a, b)
		// An explicit host must be the device's address, in any form.
		for _, host := range []string{"", b.dev.Addr().Addr().String(), b.m.Addr().Addr().String(), "::"} {
			l, err := y.Listen("sdp", net.JoinHostPort(host, "0"))
			require.NoError(t, err, host)
			require.NoError(t, l.Close())
		}
		l, err := y.Listen("sdp", ":0")
		require.NoError(t, err)
		defer l.Close()
		for _, addr := range forms(b, l.Addr().(sdp.Addr).Port()) {
			go func() {
				if c, err := l.Accept(); err == nil {
					_, _ = io.Copy(c, c)
					c.Close()
				}
			}()
			c, err := (&sdp.Dialer{Stack: x, UDPPort: b.dev.Addr().Port()}).DialContext(soon(t), "sdp", addr.String())
			require.NoError(t, err, addr)
			require.Equal(t, l.Addr(), c.RemoteAddr())
			_, err = c.Write([]byte("echo"))
			require.NoError(t, err)
			var buf [4]byte
			_, err = io.ReadFull(c, buf[:])
			require.NoError(t, err)
			require.NoError(t, c.Close())
		}
	}},
	{"SDP datagrams", func(t *testing.T, a, b *end) {
		x, y := stacks(t, a, b)
		from, err := x.ListenPacket("sdp", ":0")
		require.NoError(t, err)
		defer from.Close()
		to, err := y.ListenPacket("sdp", ":0")
		require.NoError(t, err)
		defer to.Close()
		require.NoError(t, to.SetDeadline(time.Now().Add(20*time.Second)))
		if b.dev.Addr().Port() != 4791 { // peers learn the port from requests only
			_, err = to.WriteTo([]byte("here"), from.LocalAddr())
			require.NoError(t, err)
			_, _, err = from.ReadFrom(make([]byte, 16))
			require.NoError(t, err)
		}
		for _, addr := range forms(b, to.LocalAddr().(sdp.Addr).Port()) {
			_, err = from.WriteTo([]byte("datagram"), sdp.Addr{AddrPort: addr})
			require.NoError(t, err, addr)
			var buf [16]byte
			n, src, err := to.ReadFrom(buf[:])
			require.NoError(t, err)
			require.Equal(t, "datagram", string(buf[:n]))
			require.Equal(t, from.LocalAddr(), src)
		}
		require.EqualValues(t, 1, from.(*sdp.PacketConn).Stats().Asked, "one peer in every form")
	}},
}

// forms returns forms of the address of a device with a port: with its zone, with another zone, and
// without a zone.
func forms(e *end, port uint16) (list []netip.AddrPort) {
	ip := e.dev.Addr().Addr()
	for _, zone := range []string{ip.Zone(), "other0", ""} {
		list = append(list, netip.AddrPortFrom(ip.WithZone(zone), port))
	}
	return list
}

func address(t *testing.T, e *end) verbs.AHAttr {
	t.Helper()
	gid, err := e.dev.QueryGID(1, 0)
	require.NoError(t, err)
	return verbs.AHAttr{DGID: gid.GID, UDPPort: e.dev.Addr().Port()}
}

func stacks(t *testing.T, a, b *end) (x, y *sdp.Stack) {
	t.Helper()
	x, err := sdp.New(a.dev, sdp.Options{Manager: a.m})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	y, err = sdp.New(b.dev, sdp.Options{Manager: b.m})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, y.Close()) })
	return x, y
}

// connected connects two queue pairs without a manager, and tests SEND and WRITE.
func connected(t *testing.T, a, b *end, typ verbs.QPType) {
	t.Helper()
	qa, qb := a.qp(t, typ), b.qp(t, typ)
	ea, err := verbs.LocalEndpoint(a.dev, qa, 1)
	require.NoError(t, err)
	eb, err := verbs.LocalEndpoint(b.dev, qb, 2)
	require.NoError(t, err)
	require.NoError(t, verbs.Connect(qa, ea, eb, verbs.ConnectOptions{}))
	require.NoError(t, verbs.Connect(qb, eb, ea, verbs.ConnectOptions{}))
	send(t, a, b, qa, qb, verbs.SendWR{})
	_, err = qa.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGList: []verbs.SGE{a.mr.SGE(0, 8)},
		RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
	require.NoError(t, err)
	a.next(t)
}

// TestLinkLocal runs linkLocals between two devices at one address, and between both ends of a
// cable of two namespaces, with capture, fault injection and every link.
func TestLinkLocal(t *testing.T) {
	a, b := netns.NewTest(t), netns.NewTest(t)
	ipA, ipB := netns.ConnectTestVeth(a, b, "cable0")
	for _, place := range []struct {
		name string
		a, b site
		o    rnic.Options
	}{
		{"one address", site{a, netip.AddrPortFrom(ipA, 4791)}, site{a, netip.AddrPortFrom(ipA, 4792)}, rnic.Options{}},
		{"cable", site{a, netip.AddrPortFrom(ipA, 4791)}, site{b, netip.AddrPortFrom(ipB, 4791)}, rnic.Options{}},
		{"cable, impaired and captured", site{a, netip.AddrPortFrom(ipA, 4791)}, site{b, netip.AddrPortFrom(ipB, 4791)},
			rnic.Options{Impair: "loss 1% seed 3; drop 1st ACK"}},
		{"cable, portable", site{a, netip.AddrPortFrom(ipA, 4791)}, site{b, netip.AddrPortFrom(ipB, 4791)}, rnic.Options{Portable: true}},
		{"cable, shards", site{a, netip.AddrPortFrom(ipA, 4791)}, site{b, netip.AddrPortFrom(ipB, 4791)}, rnic.Options{Shards: 3}},
	} {
		for _, c := range linkLocals {
			lossy := place.o.Impair != ""
			if lossy && slices.Contains([]string{"UC", "UD", "SIDR", "SDP datagrams"}, c.name) {
				continue // messages may be lost
			}
			t.Run(place.name+"/"+c.name, func(t *testing.T) {
				oa, ob := place.o, place.o
				if lossy {
					oa.Capture, ob.Capture = filepath.Join(t.TempDir(), "a.pcapng"), filepath.Join(t.TempDir(), "b.pcapng")
				}
				c.test(t, place.a.open(t, oa), place.b.open(t, ob))
			})
		}
	}
}
