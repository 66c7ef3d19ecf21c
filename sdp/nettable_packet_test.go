package sdp_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// datagramConn has the common methods of *net.UDPConn and *sdp.PacketConn.
type datagramConn interface {
	net.PacketConn
	ReadFromUDPAddrPort([]byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort([]byte, netip.AddrPort) (int, error)
	SetReadBuffer(int) error
	SetWriteBuffer(int) error
}

// udpConn is a *net.UDPConn without the flags of its ReadMsgUDPAddrPort.
type udpConn struct{ *net.UDPConn }

var _, _ datagramConn = udpConn{}, (*sdp.PacketConn)(nil)

// packetRow is a sequence of calls on a datagram socket; to sends from another one to it.
type packetRow struct {
	name   string
	do     func(t *testing.T, n *notes, a, b datagramConn)
	except []exception
}

// readFrom records a ReadFrom, and returns the datagram.
func readFrom(n *notes, call string, a datagramConn, p []byte) {
	count, from, err := a.ReadFrom(p)
	n.sayN(call, count, err)
	n.list = append(n.list, "from "+n.addr(from)+": "+string(p[:count]))
}

func endpoint(a net.Addr) netip.AddrPort { return netip.MustParseAddrPort(a.String()) }

// packetCalls are all calls of a socket that do not block on a closed one.
func packetCalls(n *notes, a datagramConn, to net.Addr) {
	buf := make([]byte, 4)
	readFrom(n, "ReadFrom", a, buf)
	readFrom(n, "ReadFrom of nothing", a, nil)
	count, from, err := a.ReadFromUDPAddrPort(buf)
	n.sayN("ReadFromUDPAddrPort", count, err)
	n.sayIf("from nobody", !from.IsValid())
	count, err = a.WriteTo(buf, to)
	n.sayN("WriteTo", count, err)
	count, err = a.WriteTo(make([]byte, 70_000), to)
	n.sayN("WriteTo of too much", count, err)
	count, err = a.WriteToUDPAddrPort(buf, endpoint(to))
	n.sayN("WriteToUDPAddrPort", count, err)
	n.record("SetDeadline", a.SetDeadline(time.Time{}))
	n.record("SetReadDeadline", a.SetReadDeadline(past))
	n.record("SetWriteDeadline", a.SetWriteDeadline(past))
	n.record("SetReadBuffer", a.SetReadBuffer(4096))
	n.record("SetWriteBuffer", a.SetWriteBuffer(4096))
	n.record("Close", a.Close())
}

var packetRows = []packetRow{
	{name: "closed", do: func(t *testing.T, n *notes, a, b datagramConn) {
		local := a.LocalAddr().String()
		n.record("first Close", a.Close())
		n.sayIf("LocalAddr stays", a.LocalAddr().String() == local)
		packetCalls(n, a, b.LocalAddr())
	}},
	{name: "closed with a deadline that is past", do: func(t *testing.T, n *notes, a, b datagramConn) {
		require.NoError(t, a.SetDeadline(past))
		n.record("first Close", a.Close())
		packetCalls(n, a, b.LocalAddr())
	}},
	{name: "settings", do: func(t *testing.T, n *notes, a, b datagramConn) {
		for _, bytes := range []int{0, 1, 64 << 10} {
			n.record("SetReadBuffer", a.SetReadBuffer(bytes))
			n.record("SetWriteBuffer", a.SetWriteBuffer(bytes))
		}
	}},
	{name: "deadline past", do: func(t *testing.T, n *notes, a, b datagramConn) {
		_, err := b.WriteTo([]byte("data"), a.LocalAddr())
		require.NoError(t, err)
		require.NoError(t, a.SetDeadline(past))
		for range 2 {
			readFrom(n, "ReadFrom", a, make([]byte, 4))
			readFrom(n, "ReadFrom of nothing", a, nil)
			count, err := a.WriteTo([]byte("data"), b.LocalAddr())
			n.sayN("WriteTo", count, err)
			count, err = a.WriteTo(make([]byte, 70_000), b.LocalAddr())
			n.sayN("WriteTo of too much", count, err)
		}
		require.NoError(t, a.SetDeadline(time.Time{}))
		readFrom(n, "ReadFrom", a, make([]byte, 8))
	}},
	{name: "sizes", do: func(t *testing.T, n *notes, a, b datagramConn) {
		for _, text := range []string{"", "data", "longer than the reader has room"} {
			count, err := b.WriteTo([]byte(text), a.LocalAddr())
			n.sayN("WriteTo", count, err)
			readFrom(n, "ReadFrom", a, make([]byte, 6))
		}
		_, err := b.WriteToUDPAddrPort([]byte("data"), endpoint(a.LocalAddr()))
		require.NoError(t, err)
		readFrom(n, "ReadFrom of nothing", a, nil)
		count, err := b.WriteToUDPAddrPort([]byte("data"), endpoint(a.LocalAddr()))
		n.sayN("WriteToUDPAddrPort", count, err)
		count, from, err := a.ReadFromUDPAddrPort(make([]byte, 2))
		n.sayN("ReadFromUDPAddrPort", count, err)
		n.sayIf("from the peer", from == endpoint(b.LocalAddr()))
		count, err = a.WriteTo(make([]byte, 70_000), b.LocalAddr())
		n.sayN("WriteTo of too much", count, err)
	}},
	{name: "no address", do: func(t *testing.T, n *notes, a, b datagramConn) {
		count, err := a.WriteTo([]byte("data"), nil)
		n.sayN("WriteTo nil", count, err)
		count, err = a.WriteTo([]byte("data"), &net.UnixAddr{Name: "x", Net: "unix"})
		n.sayN("WriteTo another kind", count, err)
		count, err = a.WriteTo([]byte("data"), (*net.UDPAddr)(nil))
		n.sayIf("WriteTo a nil address fails", count == 0 && err != nil)
		count, err = a.WriteToUDPAddrPort([]byte("data"), netip.AddrPort{})
		n.sayIf("WriteTo no address fails", count == 0 && err != nil)
		port0 := netip.AddrPortFrom(endpoint(b.LocalAddr()).Addr(), 0)
		n.names[port0.String()] = "port 0"
		count, err = a.WriteToUDPAddrPort([]byte("data"), port0)
		n.sayN("WriteTo port 0", count, err)
	}},
	{name: "Close during ReadFrom", do: func(t *testing.T, n *notes, a, b datagramConn) {
		outcome := blocked(func() (int, error) { c, _, err := a.ReadFrom(make([]byte, 1)); return c, err })
		n.record("Close", a.Close())
		count, err := outcome()
		n.sayN("ReadFrom", count, err)
	}},
	{name: "deadline in the past during ReadFrom", do: func(t *testing.T, n *notes, a, b datagramConn) {
		outcome := blocked(func() (int, error) { c, _, err := a.ReadFrom(make([]byte, 1)); return c, err })
		n.record("SetReadDeadline", a.SetReadDeadline(past))
		count, err := outcome()
		n.sayN("ReadFrom", count, err)
	}},
	{name: "no peer", do: func(t *testing.T, n *notes, a, b datagramConn) {
		require.NoError(t, b.Close())
		count, err := a.WriteTo([]byte("data"), b.LocalAddr())
		n.sayN("WriteTo", count, err)
	}, except: []exception{{
		"WriteTo: 4, <nil>", "WriteTo: 0, write(ours local>peer) ECONNREFUSED",
		"the peer is queried for its queue pair",
	}}},
}

func TestNetPacketConn(t *testing.T) {
	x, y := stack(t, rnic.Options{}, sdp.Options{}), stack(t, rnic.Options{}, sdp.Options{})
	ends := []struct {
		network string
		open    func(t *testing.T) (a, b datagramConn)
	}{
		{"udp", func(t *testing.T) (a, b datagramConn) {
			open := func() datagramConn {
				c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
				require.NoError(t, err)
				t.Cleanup(func() { c.Close() })
				return udpConn{c}
			}
			return open(), open()
		}},
		{"sdp", func(t *testing.T) (a, b datagramConn) {
			c, err := x.ListenPacketPort(0)
			require.NoError(t, err)
			d, err := y.ListenPacketPort(0)
			require.NoError(t, err)
			t.Cleanup(func() { c.Close(); d.Close() })
			return c, d
		}},
	}
	for _, row := range packetRows {
		t.Run(row.name, func(t *testing.T) {
			var seen [2][]string
			for i, end := range ends {
				a, b := end.open(t)
				n := &notes{network: end.network, names: map[string]string{}}
				n.name(a.LocalAddr(), "local")
				n.name(b.LocalAddr(), "peer")
				row.do(t, n, a, b)
				seen[i] = n.list
			}
			requireSameResults(t, seen[0], seen[1], row.except)
		})
	}
}

// TestNetPacketNil calls all methods on nil and on the zero value.
func TestNetPacketNil(t *testing.T) {
	to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}
	calls := func(network string, a datagramConn) []string {
		n := &notes{network: network}
		packetCalls(n, a, to)
		n.sayIf("LocalAddr", a.LocalAddr() == nil)
		return n.list
	}
	want := calls("udp", udpConn{new(net.UDPConn)})
	require.Equal(t, want, calls("sdp", new(sdp.PacketConn)))
	require.Equal(t, want, calls("sdp", (*sdp.PacketConn)(nil)))
}
