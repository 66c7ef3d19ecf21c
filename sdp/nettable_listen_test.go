package sdp_test

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/sdp"
)

// listenRow is a sequence of calls on a listener; dial opens a connection to it.
type listenRow struct {
	name string
	do   func(t *testing.T, n *notes, l deadlineListener)
}

// accept records an Accept.
func accept(n *notes, l deadlineListener) func() (int, error) {
	return func() (int, error) {
		c, err := l.Accept()
		n.sayIf("Accept returns a connection", c != nil)
		return 0, err
	}
}

var listenRows = []listenRow{
	{"closed", func(t *testing.T, n *notes, l deadlineListener) {
		addr := l.Addr().String()
		n.record("first Close", l.Close())
		n.sayIf("Addr stays", l.Addr().String() == addr)
		for range 2 {
			_, err := accept(n, l)()
			n.record("Accept", err)
			n.record("SetDeadline", l.SetDeadline(time.Now().Add(time.Hour)))
			n.record("Close", l.Close())
		}
	}},
	{"closed with a deadline that is past", func(t *testing.T, n *notes, l deadlineListener) {
		n.record("SetDeadline", l.SetDeadline(past))
		n.record("Close", l.Close())
		_, err := accept(n, l)()
		n.record("Accept", err)
	}},
	{"deadline in the past", func(t *testing.T, n *notes, l deadlineListener) {
		n.record("SetDeadline", l.SetDeadline(past))
		for range 2 {
			_, err := accept(n, l)()
			n.record("Accept", err)
		}
		n.record("SetDeadline", l.SetDeadline(time.Now().Add(time.Millisecond)))
		_, err := accept(n, l)()
		n.record("Accept", err)
	}},
	{"deadline in the past during Accept", func(t *testing.T, n *notes, l deadlineListener) {
		outcome := blocked(accept(n, l))
		n.list = nil // the order of the two is not known
		err := l.SetDeadline(past)
		_, why := outcome()
		n.record("SetDeadline", err)
		n.record("Accept", why)
	}},
	{"Close during Accept", func(t *testing.T, n *notes, l deadlineListener) {
		outcome := blocked(accept(n, l))
		err := l.Close()
		_, why := outcome()
		n.record("Close", err)
		n.record("Accept", why)
	}},
}

func TestNetListener(t *testing.T) {
	ends := []oneEnd{tcpEnd(t), sdpEnd(t, sdp.Options{})}
	for _, row := range listenRows {
		t.Run(row.name, func(t *testing.T) {
			var seen [2][]string
			for i, end := range ends {
				l := end.listen(t)
				n := &notes{network: end.network, names: map[string]string{}}
				n.name(l.Addr(), "listener")
				row.do(t, n, l)
				seen[i] = n.list
			}
			requireSameResults(t, seen[0], seen[1], nil)
		})
	}
}

// TestNetListenerDeadlineFirst checks that a past deadline precedes a pending connection, and does
// not lose it.
func TestNetListenerDeadlineFirst(t *testing.T) {
	for _, end := range []oneEnd{tcpEnd(t), sdpEnd(t, sdp.Options{})} {
		l := end.listen(t)
		c, err := end.dial(t.Context(), end.network, l.Addr().String(), net.Dialer{})
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, l.SetDeadline(past))
		for range 20 {
			_, err = l.Accept()
			require.Error(t, err)
		}
		require.NoError(t, l.SetDeadline(time.Time{}))
		d, err := l.Accept()
		require.NoError(t, err)
		require.NoError(t, d.Close())
	}
}

// dialRow is a dial that fails.
type dialRow struct {
	name    string
	dialer  func(network string) net.Dialer
	ctx     func(context.Context) context.Context
	network string // instead of the type's own
	address string // instead of a listener's
	except  []exception
}

func canceled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func wrapTimeout(ctx context.Context) context.Context {
	ctx, cancel := context.WithDeadline(ctx, past)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// ownAddr returns a local address of a network.
func ownAddr(network, host string, port int) net.Addr {
	if network == "tcp" {
		return &net.TCPAddr{IP: net.ParseIP(host), Port: port}
	}
	ip, _ := netip.ParseAddr(host) // none if it is empty
	return sdp.Addr{AddrPort: netip.AddrPortFrom(ip, uint16(port))}
}

var dialRows = []dialRow{
	{name: "context canceled", ctx: canceled},
	{name: "context's deadline past", ctx: wrapTimeout},
	{name: "Dialer.Deadline past", dialer: func(string) net.Dialer { return net.Dialer{Deadline: past} }},
	{name: "Dialer.Timeout of a nanosecond", dialer: func(string) net.Dialer { return net.Dialer{Timeout: 1} }},
	{name: "unknown network", network: "carrier pigeon"},
	{name: "no port", address: "127.0.0.1"},
	{name: "IPv4 address, network of IPv6", network: "tcp6", address: "127.0.0.1:1"},
	{name: "IPv6 address, network of IPv4", network: "tcp4", address: "[::1]:1"},
	{name: "LocalAddr of another kind", dialer: func(string) net.Dialer {
		return net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	}},
	{name: "LocalAddr of another host", dialer: func(network string) net.Dialer {
		return net.Dialer{LocalAddr: ownAddr(network, "203.0.113.1", 0)}
	}},
}

func TestNetDial(t *testing.T) {
	ends := []oneEnd{tcpEnd(t), sdpEnd(t, sdp.Options{})}
	var closed [2]string // addresses without a listener
	for i, end := range ends {
		l := end.listen(t)
		closed[i] = l.Addr().String()
		require.NoError(t, l.Close())
	}
	rows := append([]dialRow{{name: "refused"}}, dialRows...)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var seen [2][]string
			for i, end := range ends {
				l := end.listen(t)
				n := &notes{network: end.network, names: map[string]string{}}
				n.name(l.Addr(), "listener")
				ctx, network, address, d := t.Context(), end.network, l.Addr().String(), net.Dialer{}
				if row.name == "refused" {
					address = closed[i]
					n.names[address] = "listener"
				}
				if row.ctx != nil {
					ctx = row.ctx(ctx)
				}
				if row.dialer != nil {
					d = row.dialer(end.network)
				}
				if row.network != "" {
					network = row.network
				}
				if row.address != "" {
					address = row.address
				}
				c, err := end.dial(ctx, network, address, d)
				n.record("Dial", err)
				n.sayIf("it returns a connection", c != nil)
				seen[i] = n.list
			}
			requireSameResults(t, seen[0], seen[1], row.except)
		})
	}
}

// TestNetDialLocalAddr checks that the port is the requested one, at either end.
func TestNetDialLocalAddr(t *testing.T) {
	for _, end := range []oneEnd{tcpEnd(t), sdpEnd(t, sdp.Options{})} {
		free := end.listen(t)
		require.NoError(t, free.Close())
		_, text, err := net.SplitHostPort(free.Addr().String())
		require.NoError(t, err)
		port, err := strconv.Atoi(text)
		require.NoError(t, err)
		l := end.listen(t)
		c, err := end.dial(t.Context(), end.network, l.Addr().String(), net.Dialer{LocalAddr: ownAddr(end.network, "", port)})
		require.NoError(t, err)
		defer c.Close()
		d, err := l.Accept()
		require.NoError(t, err)
		defer d.Close()
		_, local, err := net.SplitHostPort(c.LocalAddr().String())
		require.NoError(t, err)
		require.Equal(t, text, local)
		require.Equal(t, c.LocalAddr().String(), d.RemoteAddr().String())
	}
}

func TestNetListen(t *testing.T) {
	ends := []oneEnd{tcpEnd(t), sdpEnd(t, sdp.Options{})}
	for name, at := range map[string]func(taken string) (network, address string){
		"taken":           func(taken string) (string, string) { return "", taken },
		"unknown network": func(string) (string, string) { return "carrier pigeon", "127.0.0.1:0" },
		"no port":         func(string) (string, string) { return "", "127.0.0.1" },
		"another kind":    func(taken string) (string, string) { return "tcp6", taken },
		"another host":    func(string) (string, string) { return "", "203.0.113.1:0" },
	} {
		t.Run(name, func(t *testing.T) {
			var seen [2][]string
			for i, end := range ends {
				l := end.listen(t)
				network, address := at(l.Addr().String())
				if network == "" {
					network = end.network
				}
				n := &notes{network: end.network, names: map[string]string{"203.0.113.1:0": "another"}}
				n.name(l.Addr(), "listener")
				got, err := end.listenAt(network, address)
				n.record("Listen", err)
				n.sayIf("it returns a listener", got != nil)
				seen[i] = n.list
			}
			requireSameResults(t, seen[0], seen[1], nil)
		})
	}
}
