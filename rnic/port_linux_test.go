package rnic

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/netns"
	"github.com/softrnic/softrnic/verbs"
)

// portOf opens a device in a namespace and checks that its port is ACTIVE.
func portOf(t *testing.T, n *netns.TestNamespace, ip netip.Addr) *end {
	t.Helper()
	var e *end
	n.Do(func() { e = newEnd(t, Options{Addr: netip.AddrPortFrom(ip, roceUDPPort)}) })
	e.port(t, verbs.PortActive, physLinkUp)
	return e
}

func (e *end) port(t *testing.T, state verbs.PortState, phys uint8) verbs.PortAttr {
	t.Helper()
	p, err := e.dev.QueryPort(1)
	require.NoError(t, err)
	require.Equal(t, state, p.State)
	require.Equal(t, phys, p.PhysState)
	return p
}

// requireEvents checks that these events of the port come in order, and the state of the port after
// them.
func (e *end) requireEvents(t *testing.T, state verbs.PortState, types ...verbs.EventType) {
	t.Helper()
	for _, typ := range types {
		ev, err := e.dev.AsyncEvent(soon(t))
		require.NoError(t, err)
		require.Equal(t, typ, ev.Type)
		require.Equal(t, 1, ev.Port)
		require.NotEmpty(t, ev.Failure.Event)
	}
	phys := uint8(physLinkUp)
	if state == verbs.PortDown {
		phys = physDisabled
	}
	e.port(t, state, phys)
}

// TestPortFollowsInterface takes interfaces down and up and removes addresses, at both ends of a
// cable, and checks the events.
func TestPortFollowsInterface(t *testing.T) {
	a, b := netns.NewTest(t), netns.NewTest(t)
	netns.ConnectTestVeth(a, b, "cable0")
	ips := []netip.Addr{a.Up("cable0", "10.9.0.1/24"), b.Up("cable0", "10.9.0.2/24")}
	x, y := portOf(t, a, ips[0]), portOf(t, b, ips[1])
	connect(t, x.dev, x.qp, y.dev, y.qp)
	six := portOf(t, a, a.Up("cable0", "fd09::1/64"))
	lo := portOf(t, a, netip.MustParseAddr("127.0.0.7")) // on the subnet of an address only
	all := []*end{x, y, six}

	const down, active = verbs.PortDown, verbs.PortActive
	a.IP("link set cable0 down") // which removes IPv6 addresses
	x.requireEvents(t, down, verbs.EventPortErr)
	y.requireEvents(t, down, verbs.EventPortErr) // no carrier
	require.Contains(t, []verbs.EventType{verbs.EventGIDChange, verbs.EventPortErr}, six.nextEvent(t))
	write := verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGList: []verbs.SGE{x.mr.SGE(0, 8)}, RemoteAddr: y.mr.Addr(), RKey: y.mr.RKey()}
	a.IP("link set cable0 up")
	x.requireEvents(t, active, verbs.EventPortActive)
	y.requireEvents(t, active, verbs.EventPortActive)
	_, err := x.qp.PostSend([]verbs.SendWR{write})
	require.NoError(t, err)
	var wc [1]verbs.WC
	_, err = x.cq.PollWait(soon(t), wc[:])
	require.NoError(t, err)
	require.Equal(t, verbs.WCSuccess, wc[0].Status, "the socket outlives that")

	a.IP("addr del 10.9.0.1/24 dev cable0")
	x.requireEvents(t, down, verbs.EventGIDChange, verbs.EventPortErr)
	a.IP("addr add 10.9.0.9/24 dev cable0") // another one on its subnet
	a.IP("addr add 10.9.0.1/24 dev cable0")
	x.requireEvents(t, active, verbs.EventGIDChange, verbs.EventPortActive)

	a.IP("link set lo down")
	lo.requireEvents(t, down, verbs.EventPortErr)
	a.IP("link set lo up")
	lo.requireEvents(t, active, verbs.EventPortActive)

	for mtu, want := range map[string]verbs.MTU{"1200": verbs.MTU1024, "700": verbs.MTU512} {
		a.IP("link set cable0 mtu " + mtu)
		require.Eventually(t, func() bool { return x.port(t, active, physLinkUp).ActiveMTU == want }, patience, time.Millisecond, mtu)
	}
	a.IP("link del cable0")
	require.Contains(t, []verbs.EventType{verbs.EventGIDChange, verbs.EventPortErr}, x.nextEvent(t))
	require.Eventually(t, func() bool {
		p, err := x.dev.QueryPort(1)
		return err == nil && p.State == down
	}, patience, time.Millisecond)
	for _, e := range all {
		require.NoError(t, e.dev.Close())
	}
}

// nextEvent returns the type of the next event.
func (e *end) nextEvent(t *testing.T) verbs.EventType {
	t.Helper()
	ev, err := e.dev.AsyncEvent(soon(t))
	require.NoError(t, err)
	return ev.Type
}

// TestPortDownAtOpen opens a device whose interface is down.
func TestPortDownAtOpen(t *testing.T) {
	a, b := netns.NewTest(t), netns.NewTest(t)
	netns.ConnectTestVeth(a, b, "cable0")
	ip := a.Up("cable0", "10.9.0.1/24")
	a.IP("link set cable0 down")
	var d *Device
	a.Do(func() {
		var err error
		d, err = Open(Options{Addr: netip.AddrPortFrom(ip, roceUDPPort)})
		require.NoError(t, err)
	})
	defer d.Close()
	e := &end{dev: d}
	e.port(t, verbs.PortDown, physDisabled)
	a.IP("link set cable0 up")
	e.requireEvents(t, verbs.PortActive, verbs.EventPortActive)
}
