package sdp_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/sdp"
)

// connRow is a sequence of calls on a connection whose other end is b.
type connRow struct {
	name   string
	do     func(t *testing.T, n *notes, a, b streamConn)
	except []exception
}

// connCalls are all calls of a connection that do not block on a closed one.
func connCalls(n *notes, a streamConn) {
	buf := make([]byte, 4)
	count, err := a.Read(buf)
	n.sayN("Read", count, err)
	count, err = a.Read(nil)
	n.sayN("Read of nothing", count, err)
	count, err = a.Write([]byte("data"))
	n.sayN("Write", count, err)
	count, err = a.Write(nil)
	n.sayN("Write of nothing", count, err)
	m, err := a.ReadFrom(strings.NewReader("data"))
	n.sayN("ReadFrom", int(m), err)
	m, err = a.WriteTo(io.Discard)
	n.sayN("WriteTo", int(m), err)
	n.record("SetDeadline", a.SetDeadline(time.Time{}))
	n.record("SetReadDeadline", a.SetReadDeadline(past))
	n.record("SetWriteDeadline", a.SetWriteDeadline(time.Now().Add(time.Hour)))
	n.record("SetKeepAlive", a.SetKeepAlive(true))
	n.record("SetKeepAlivePeriod", a.SetKeepAlivePeriod(time.Minute))
	n.record("SetKeepAliveConfig", a.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true}))
	n.record("SetLinger", a.SetLinger(1))
	n.record("SetNoDelay", a.SetNoDelay(true))
	n.record("SetReadBuffer", a.SetReadBuffer(4096))
	n.record("SetWriteBuffer", a.SetWriteBuffer(4096))
	n.record("CloseRead", a.CloseRead())
	n.record("CloseWrite", a.CloseWrite())
	n.record("Close", a.Close())
}

// fill writes until the buffers are full, and clears the deadline.
func fill(t *testing.T, a streamConn) {
	require.NoError(t, a.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
	for b := make([]byte, 256<<10); ; {
		if _, err := a.Write(b); err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			break
		}
	}
	require.NoError(t, a.SetWriteDeadline(time.Time{}))
}

// brokenWrite writes until an error, one of two: the reset may arrive meanwhile.
func brokenWrite(a streamConn) bool {
	for {
		if _, err := a.Write([]byte("more")); err != nil {
			return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
		}
	}
}

func readByte(t *testing.T, c streamConn) {
	_, err := io.ReadFull(c, make([]byte, 1))
	require.NoError(t, err)
}

func writeByte(t *testing.T, c streamConn) {
	_, err := c.Write([]byte("x"))
	require.NoError(t, err)
}

var connRows = []connRow{
	{name: "closed", do: func(t *testing.T, n *notes, a, b streamConn) {
		local, remote := a.LocalAddr().String(), a.RemoteAddr().String()
		n.record("first Close", a.Close())
		n.sayIf("LocalAddr stays", a.LocalAddr().String() == local)
		n.sayIf("RemoteAddr stays", a.RemoteAddr().String() == remote)
		connCalls(n, a)
	}},
	{name: "closed with a deadline that is past", do: func(t *testing.T, n *notes, a, b streamConn) {
		require.NoError(t, a.SetDeadline(past))
		require.NoError(t, a.Close())
		connCalls(n, a)
	}},
	{name: "settings", do: func(t *testing.T, n *notes, a, b streamConn) {
		for _, sec := range []int{5, -1, 0} {
			n.record("SetLinger", a.SetLinger(sec))
		}
		for _, d := range []time.Duration{time.Minute, 0, -1} {
			n.record("SetKeepAlivePeriod", a.SetKeepAlivePeriod(d))
		}
		for _, on := range []bool{false, true} {
			n.record("SetKeepAlive", a.SetKeepAlive(on))
			n.record("SetNoDelay", a.SetNoDelay(on))
			n.record("SetKeepAliveConfig", a.SetKeepAliveConfig(net.KeepAliveConfig{Enable: on, Idle: time.Minute, Interval: time.Second, Count: 3}))
		}
		for _, bytes := range []int{0, 1, 64 << 10} {
			n.record("SetReadBuffer", a.SetReadBuffer(bytes))
			n.record("SetWriteBuffer", a.SetWriteBuffer(bytes))
		}
	}},
	{name: "nothing to read or write", do: func(t *testing.T, n *notes, a, b streamConn) {
		count, err := a.Read(nil)
		n.sayN("Read", count, err)
		count, err = a.Write(nil)
		n.sayN("Write", count, err)
		require.NoError(t, a.SetDeadline(past))
		count, err = a.Read(nil)
		n.sayN("Read, deadline past", count, err)
		count, err = a.Write(nil)
		n.sayN("Write, deadline past", count, err)
		require.NoError(t, a.SetDeadline(time.Time{}))
		require.NoError(t, b.Close())
		_, err = a.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		count, err = a.Read([]byte{})
		n.sayN("Read at the end", count, err)
		require.NoError(t, a.CloseWrite())
		count, err = a.Write(nil)
		n.sayN("Write after the end", count, err)
	}},
	{name: "deadline past, with data, at the end, and moved", do: func(t *testing.T, n *notes, a, b streamConn) {
		writeByte(t, b)
		require.NoError(t, b.CloseWrite())
		require.NoError(t, a.SetDeadline(past))
		buf := make([]byte, 4)
		for range 2 {
			count, err := a.Read(buf)
			n.sayN("Read", count, err)
			count, err = a.Write(buf)
			n.sayN("Write", count, err)
		}
		require.NoError(t, a.SetReadDeadline(time.Time{}))
		count, err := a.Read(buf)
		n.sayN("Read", count, err)
		for range 2 {
			count, err = a.Read(buf)
			n.sayN("Read at the end", count, err)
		}
		require.NoError(t, a.SetReadDeadline(past))
		count, err = a.Read(buf)
		n.sayN("Read at the end, deadline past", count, err)
		require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Hour)))
		count, err = a.Write(buf)
		n.sayN("Write", count, err)
	}},
	{name: "CloseWrite", do: func(t *testing.T, n *notes, a, b streamConn) {
		writeByte(t, a)
		n.record("CloseWrite", a.CloseWrite())
		n.record("CloseWrite again", a.CloseWrite())
		count, err := a.Write([]byte("data"))
		n.sayN("Write", count, err)
		m, err := a.ReadFrom(strings.NewReader("data"))
		n.sayN("ReadFrom", int(m), err)
		require.NoError(t, a.SetWriteDeadline(past))
		count, err = a.Write([]byte("data"))
		n.sayN("Write, deadline past", count, err)
		all, err := io.ReadAll(b)
		n.sayN("the peer reads", len(all), err)
		writeByte(t, b)
		readByte(t, a)
	}},
	{name: "CloseWrite during a Write", do: func(t *testing.T, n *notes, a, b streamConn) {
		fill(t, a)
		big := make([]byte, 16<<20)
		outcome := blocked(func() (int, error) { return a.Write(big) })
		n.record("CloseWrite", a.CloseWrite())
		count, err := outcome()
		n.record("Write", err)
		n.sayIf("it has not written all", count < len(big))
	}},
	{name: "CloseRead", do: func(t *testing.T, n *notes, a, b streamConn) {
		outcome := blocked(func() (int, error) { return a.Read(make([]byte, 2<<20)) })
		n.record("CloseRead", a.CloseRead())
		count, err := outcome()
		n.sayN("Read", count, err)
		n.record("CloseRead again", a.CloseRead())
		count, err = a.Read(make([]byte, 1))
		n.sayN("Read after it", count, err)
		count, err = a.Read(nil)
		n.sayN("Read of nothing", count, err)
		m, err := a.WriteTo(io.Discard)
		n.sayN("WriteTo", int(m), err)
		require.NoError(t, a.SetReadDeadline(past))
		count, err = a.Read(make([]byte, 1))
		n.sayN("Read, deadline past", count, err)
		count, err = b.Write([]byte("data"))
		n.sayN("the peer's Write", count, err)
		writeByte(t, a)
		readByte(t, b)
	}},
	{name: "CloseRead before what has arrived is read", do: func(t *testing.T, n *notes, a, b streamConn) {
		_, err := b.Write([]byte("xy"))
		require.NoError(t, err)
		readByte(t, a)
		n.record("CloseRead", a.CloseRead())
		count, err := a.Read(make([]byte, 4))
		n.sayN("Read", count, err)
		count, err = a.Read(make([]byte, 4))
		n.sayN("Read", count, err)
	}},
	{name: "CloseRead with a deadline ahead", do: func(t *testing.T, n *notes, a, b streamConn) {
		require.NoError(t, a.SetReadDeadline(time.Now().Add(time.Hour)))
		outcome := blocked(func() (int, error) { return a.Read(make([]byte, 1)) })
		n.record("CloseRead", a.CloseRead())
		count, err := outcome()
		n.sayN("Read", count, err)
	}},
	{name: "Close during a Read", do: func(t *testing.T, n *notes, a, b streamConn) {
		outcome := blocked(func() (int, error) { return a.Read(make([]byte, 1)) })
		n.record("Close", a.Close())
		count, err := outcome()
		n.sayN("Read", count, err)
	}},
	{name: "Close during a Write", do: func(t *testing.T, n *notes, a, b streamConn) {
		fill(t, a)
		outcome := blocked(func() (int, error) { return a.Write(make([]byte, 16<<20)) })
		n.record("Close", a.Close())
		_, err := outcome()
		n.record("Write", err)
	}},
	{name: "deadline in the past during a Read", do: func(t *testing.T, n *notes, a, b streamConn) {
		outcome := blocked(func() (int, error) { return a.Read(make([]byte, 1)) })
		n.record("SetReadDeadline", a.SetReadDeadline(past))
		count, err := outcome()
		n.sayN("Read", count, err)
		require.NoError(t, a.SetReadDeadline(time.Time{}))
		writeByte(t, b)
		readByte(t, a)
	}},
	{name: "deadline in the past during a Write", do: func(t *testing.T, n *notes, a, b streamConn) {
		fill(t, a)
		big := make([]byte, 16<<20)
		outcome := blocked(func() (int, error) { return a.Write(big) })
		n.record("SetWriteDeadline", a.SetWriteDeadline(past))
		count, err := outcome()
		n.record("Write", err)
		n.sayIf("it has not written all", count < len(big))
	}},
	{name: "the peer resets by SetLinger(0)", do: func(t *testing.T, n *notes, a, b streamConn) {
		outcome := blocked(func() (int, error) { return a.Read(make([]byte, 1)) })
		require.NoError(t, b.SetLinger(0))
		n.record("the peer's Close", b.Close())
		count, err := outcome()
		n.sayN("Read", count, err)
		n.sayIf("Write fails", brokenWrite(a))
		n.record("Close", a.Close())
	}},
	{name: "the peer resets without a reader", do: func(t *testing.T, n *notes, a, b streamConn) {
		require.NoError(t, b.SetLinger(0))
		require.NoError(t, b.Close())
		n.sayIf("Write fails", brokenWrite(a))
	}},
	{name: "the peer closes with bytes unread", do: func(t *testing.T, n *notes, a, b streamConn) {
		_, err := a.Write([]byte("xy"))
		require.NoError(t, err)
		readByte(t, b)
		require.NoError(t, b.Close())
		count, err := a.Read(make([]byte, 1))
		n.sayN("Read", count, err)
	}},
	{name: "the peer closes", do: func(t *testing.T, n *notes, a, b streamConn) {
		require.NoError(t, b.Close())
		count, err := a.Read(make([]byte, 1))
		n.sayN("Read", count, err)
		n.sayIf("Write fails in the end", brokenWrite(a))
	}},
	{name: "ReadFrom and WriteTo", do: func(t *testing.T, n *notes, a, b streamConn) {
		m, err := a.ReadFrom(strings.NewReader("data"))
		n.sayN("ReadFrom", int(m), err)
		m, err = a.ReadFrom(iotest.ErrReader(errMine))
		n.sayN("ReadFrom of what fails", int(m), err)
		require.NoError(t, a.CloseWrite())
		m, err = b.WriteTo(io.Discard)
		n.sayN("the peer's WriteTo", int(m), err)
		require.NoError(t, b.SetWriteDeadline(past))
		m, err = b.ReadFrom(strings.NewReader("data"))
		n.sayIf("ReadFrom fails", m == 0 && errors.Is(err, os.ErrDeadlineExceeded))
	}},
	{name: "a buffer of a negative size", do: func(t *testing.T, n *notes, a, b streamConn) {
		n.record("SetReadBuffer", a.SetReadBuffer(-1))
		n.record("SetWriteBuffer", a.SetWriteBuffer(-1))
	}, except: []exception{
		{"SetReadBuffer: <nil>", "SetReadBuffer: set(ours ->local) EINVAL", "it cannot be; what systems make of it is not the same"},
		{"SetWriteBuffer: <nil>", "SetWriteBuffer: set(ours ->local) EINVAL", "the same"},
	}},
}

func TestNetConn(t *testing.T) {
	tcp := tcpEnd(t)
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		ours := sdpEnd(t, o)
		for _, row := range connRows {
			t.Run(row.name, func(t *testing.T) {
				var seen [2][]string
				for i, end := range []oneEnd{tcp, ours} {
					a, b := end.pair(t)
					n := &notes{network: end.network, names: map[string]string{}}
					n.name(a.LocalAddr(), "local")
					n.name(a.RemoteAddr(), "remote")
					row.do(t, n, a, b)
					seen[i] = n.list
				}
				requireSameResults(t, seen[0], seen[1], row.except)
			})
		}
	})
}

// TestNetNil calls all methods on the zero value, and on nil, where some methods of net's types
// panic.
func TestNetNil(t *testing.T) {
	calls := func(network string, c streamConn, l deadlineListener) []string {
		n := &notes{network: network}
		connCalls(n, c)
		n.sayIf("LocalAddr", c.LocalAddr() == nil)
		n.sayIf("RemoteAddr", c.RemoteAddr() == nil)
		got, err := l.Accept()
		n.record("Accept", err)
		n.sayIf("it has none", got == nil)
		n.record("SetDeadline", l.SetDeadline(past))
		n.record("Close of a listener", l.Close())
		return n.list
	}
	want := calls("tcp", new(net.TCPConn), new(net.TCPListener))
	require.Equal(t, want, calls("sdp", new(sdp.Conn), new(sdp.Listener)))
	require.Equal(t, want, calls("sdp", (*sdp.Conn)(nil), (*sdp.Listener)(nil)))
}

// TestNetMissing lists the methods of package net's types that sdp does not have, because there is
// no file descriptor, or another path than the adapter's.
func TestNetMissing(t *testing.T) {
	for _, ours := range []any{(*sdp.Conn)(nil), (*sdp.Listener)(nil), (*sdp.PacketConn)(nil)} {
		_, is := ours.(syscall.Conn)
		require.False(t, is, "%T: programs that test for a descriptor must find none", ours)
		_, is = ours.(interface{ File() (*os.File, error) })
		require.False(t, is)
		_, is = ours.(interface{ MultipathTCP() (bool, error) })
		require.False(t, is)
	}
}
