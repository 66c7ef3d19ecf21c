package cm_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// helloTo returns a Hello from port 50123 of a to a listener.
func helloTo(a *end, to netip.AddrPort) *bsdh.Hello {
	return &bsdh.Hello{
		Version: bsdh.Version, MaxAdverts: 1, DesRemRcvSz: 8208, LocalRcvSz: 4112, Bufs: 64,
		LocalPort: 50123, Src: a.m.Addr().Addr(), Dst: to.Addr(), Extension: bsdh.Extension{FlowControl: bsdh.FlowControlNIC, Ring: 1 << 16},
	}
}

// TestSDP checks that in the port space of SDP all private data belongs to the programs, and that
// the addresses are in the Hello.
func TestSDP(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "::1"} {
		t.Run(addr, func(t *testing.T) {
			at := rnic.Options{Addr: netip.AddrPortFrom(netip.MustParseAddr(addr), 0), AnyPort: true}
			a, b := newEndOn(t, at, cm.Options{}), newEndOn(t, at, cm.Options{})
			l, err := b.m.Listen(0, cm.ListenOptions{PortSpace: cm.SDP})
			require.NoError(t, err)
			hello := helloTo(a, l.Addr())
			ack := bsdh.HelloAck{Version: bsdh.Version, MaxAdverts: 1, ActRcvSz: 8208, Bufs: 63, Extension: hello.Extension}

			dialed := make(chan accepted, 1)
			qp := a.newQP(t, verbs.RC)
			go func() {
				c, err := a.m.Dial(soon(t), l.Addr(), qp, cm.DialOptions{
					UDPPort: b.m.Addr().Port(), PortSpace: cm.SDP, PrivateData: hello.Append(nil),
				})
				dialed <- accepted{c, err}
			}()
			r, err := l.Accept(soon(t))
			require.NoError(t, err)
			require.Equal(t, hello.Append(nil), r.PrivateData())
			require.Equal(t, netip.AddrPortFrom(hello.Src, hello.LocalPort), r.RemoteAddr())
			require.Equal(t, netip.AddrPortFrom(hello.Dst, l.Addr().Port()), r.LocalAddr())
			cb, err := r.Accept(soon(t), b.newQP(t, verbs.RC), cm.AcceptOptions{PrivateData: ack.Append(nil)})
			require.NoError(t, err)
			got := <-dialed
			require.NoError(t, got.err)
			ca := got.conn
			require.Equal(t, ack.Append(nil), ca.PrivateData())
			require.Equal(t, []netip.AddrPort{cb.RemoteAddr(), cb.LocalAddr()}, []netip.AddrPort{ca.LocalAddr(), ca.RemoteAddr()})
			require.Equal(t, uint16(50123), ca.LocalAddr().Port())
			require.NoError(t, ca.Disconnect(soon(t), nil))
			<-cb.Done()
		})
	}
}

// TestSDPPorts checks that ports of SDP and of TCP are separate.
func TestSDPPorts(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(9, cm.ListenOptions{})
	require.NoError(t, err)
	_, err = b.m.Listen(9, cm.ListenOptions{PortSpace: cm.SDP})
	require.NoError(t, err)
	_, err = b.m.Listen(9, cm.ListenOptions{PortSpace: cm.SDP})
	require.ErrorIs(t, err, cm.ErrInUse)
	_, err = a.dial(t, b, netip.AddrPortFrom(l.Addr().Addr(), 10), cm.DialOptions{PortSpace: cm.SDP, PrivateData: helloTo(a, l.Addr()).Append(nil)})
	var refused *cm.RejectError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, cm.InvalidServiceID, refused.Reason)
}

// TestInconsistentHello checks that an inconsistent Hello is not sent.
func TestInconsistentHello(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(9, cm.ListenOptions{PortSpace: cm.SDP})
	require.NoError(t, err)
	for _, c := range []struct {
		spoil func(h *bsdh.Hello)
		port  uint16
		want  string
	}{
		{func(h *bsdh.Hello) { h.MaxAdverts = 0 }, 0, "Hello with MaxAdverts 0"},
		{func(h *bsdh.Hello) { h.Src = netip.MustParseAddr("192.0.2.1") }, 0, "Hello from 192.0.2.1 to"},
		{func(h *bsdh.Hello) { h.Dst = netip.MustParseAddr("192.0.2.1") }, 0, "to 192.0.2.1, request from"},
		{func(*bsdh.Hello) {}, 50124, "DialOptions.LocalPort 50124, Hello in DialOptions.PrivateData has 50123"},
	} {
		h := helloTo(a, l.Addr())
		c.spoil(h)
		_, err := a.dial(t, b, l.Addr(), cm.DialOptions{PortSpace: cm.SDP, PrivateData: h.Append(nil), LocalPort: c.port})
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, c.want)
	}
	_, err = a.dial(t, b, l.Addr(), cm.DialOptions{PortSpace: cm.SDP, PrivateData: []byte("hello")})
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.ErrorIs(t, err, bsdh.ErrMalformed)
	require.Zero(t, b.m.Stats().Requests)
}
