package sdp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// Common parts of the tables in nettable_*_test.go. Each row runs on package net's type and on that
// of sdp, and both must record the same.

// streamConn has the common methods of *net.TCPConn and *sdp.Conn.
type streamConn interface {
	net.Conn
	io.ReaderFrom
	io.WriterTo
	CloseRead() error
	CloseWrite() error
	SetKeepAlive(bool) error
	SetKeepAliveConfig(net.KeepAliveConfig) error
	SetKeepAlivePeriod(time.Duration) error
	SetLinger(int) error
	SetNoDelay(bool) error
	SetReadBuffer(int) error
	SetWriteBuffer(int) error
}

var _, _ streamConn = (*net.TCPConn)(nil), (*sdp.Conn)(nil)

// deadlineListener has the common methods of *net.TCPListener and *sdp.Listener.
type deadlineListener interface {
	net.Listener
	SetDeadline(time.Time) error
}

var _, _ deadlineListener = (*net.TCPListener)(nil), (*sdp.Listener)(nil)

// notes are the records of a row, in terms that are the same for both types.
type notes struct {
	network string
	names   map[string]string // of addresses
	list    []string
}

// name gives an address a name in the notes.
func (n *notes) name(a net.Addr, name string) { n.names[a.String()] = name }

func (n *notes) addr(a net.Addr) string {
	switch {
	case a == nil:
		return "-"
	case a.Network() != n.network:
		return "of " + a.Network()
	}
	if name, ok := n.names[a.String()]; ok {
		return name
	}
	return "other"
}

// sentinels are the errors that programs look for.
var sentinels = []struct {
	name string
	err  error
}{
	{"closed", net.ErrClosed}, {"deadline", os.ErrDeadlineExceeded}, {"EOF", io.EOF},
	{"context deadline", context.DeadlineExceeded}, {"canceled", context.Canceled},
	{"ECONNRESET", syscall.ECONNRESET}, {"EPIPE", syscall.EPIPE}, {"EINVAL", syscall.EINVAL}, {"EMSGSIZE", syscall.EMSGSIZE},
	{"ECONNREFUSED", syscall.ECONNREFUSED}, {"EADDRINUSE", syscall.EADDRINUSE}, {"EADDRNOTAVAIL", syscall.EADDRNOTAVAIL},
	{"ETIMEDOUT", syscall.ETIMEDOUT}, {"ENOTCONN", syscall.ENOTCONN}, {"mine", errMine},
}

var errMine = errors.New("of the test")

// err describes an error: its chain of net.OpError, whether it is a timeout, and the matches of
// errors.Is.
func (n *notes) err(err error) string {
	switch err {
	case nil, io.EOF:
		return fmt.Sprint(err)
	}
	var words []string
	var op *net.OpError
	for rest := err; errors.As(rest, &op); rest = op.Err {
		network := op.Net
		if network == n.network || n.network == "tcp" && (network == "tcp4" || network == "tcp6") {
			network = "ours"
		}
		words = append(words, fmt.Sprintf("%s(%s %s>%s)", op.Op, network, n.addr(op.Source), n.addr(op.Addr)))
	}
	if e := (net.Error)(nil); errors.As(err, &e) && e.Timeout() {
		words = append(words, "timeout")
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			words = append(words, s.name)
		}
	}
	return strings.Join(words, " ")
}

// record records the result of a call.
func (n *notes) record(call string, err error) { n.list = append(n.list, call+": "+n.err(err)) }

// sayN records that of a call with a count of bytes.
func (n *notes) sayN(call string, count int, err error) {
	n.list = append(n.list, fmt.Sprintf("%s: %d, %s", call, count, n.err(err)))
}

// sayIf records a fact.
func (n *notes) sayIf(what string, is bool) { n.list = append(n.list, fmt.Sprintf("%s: %v", what, is)) }

// exception is an intended difference. It must exist.
type exception struct{ net, ours, why string }

// requireSameResults checks that both types record the same, except for exceptions.
func requireSameResults(t *testing.T, net, ours []string, except []exception) {
	t.Helper()
	used := make([]bool, len(except))
	for i := range net {
		if i >= len(ours) || net[i] == ours[i] {
			continue
		}
		for j, e := range except {
			if e.net == net[i] && e.ours == ours[i] {
				require.NotEmpty(t, e.why)
				ours[i], used[j] = net[i], true
			}
		}
	}
	require.Equal(t, net, ours)
	for j, e := range except {
		require.True(t, used[j], "an exception without need: %+v", e)
	}
}

// blocked starts a call that should block, and returns a function for its result. The result is the
// same if the call is ended before it blocks.
func blocked(f func() (int, error)) (outcome func() (int, error)) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := f()
		done <- result{n, err}
	}()
	time.Sleep(2 * time.Millisecond)
	return func() (int, error) { r := <-done; return r.n, r.err }
}

// past is a deadline in the past.
var past = time.Now().Add(-time.Hour)

// oneEnd is one type under test for streams.
type oneEnd struct {
	network  string
	pair     func(t *testing.T) (a, b streamConn)
	listen   func(t *testing.T) deadlineListener
	dial     func(ctx context.Context, network, address string, d net.Dialer) (net.Conn, error)
	listenAt func(network, address string) (net.Listener, error)
}

func tcpEnd(t *testing.T) oneEnd {
	listen := func(t *testing.T) deadlineListener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		return l.(*net.TCPListener)
	}
	return oneEnd{
		network: "tcp", listen: listen,
		pair: func(t *testing.T) (a, b streamConn) {
			l := listen(t)
			c, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			d, err := l.Accept()
			require.NoError(t, err)
			t.Cleanup(func() { c.Close(); d.Close() })
			return c.(*net.TCPConn), d.(*net.TCPConn)
		},
		dial: func(ctx context.Context, network, address string, d net.Dialer) (net.Conn, error) {
			return d.DialContext(ctx, network, address)
		},
		listenAt: net.Listen,
	}
}

func sdpEnd(t *testing.T, o sdp.Options) oneEnd {
	e := newEnds(t, rnic.Options{}, o)
	return oneEnd{
		network: "sdp",
		pair:    func(t *testing.T) (a, b streamConn) { return e.dial(t) },
		listen: func(t *testing.T) deadlineListener {
			l, err := e.b.ListenPort(0, 0)
			require.NoError(t, err)
			t.Cleanup(func() { l.Close() })
			return l
		},
		dial: func(ctx context.Context, network, address string, d net.Dialer) (net.Conn, error) {
			to, err := e.a.Resolve(ctx, network, address)
			if err != nil {
				return e.a.DialContext(ctx, network, address)
			}
			c, err := e.a.DialAddr(ctx, to, sdp.Dialer{
				UDPPort: e.port, LocalAddr: d.LocalAddr, Timeout: d.Timeout, Deadline: d.Deadline,
				KeepAlive: d.KeepAlive, KeepAliveConfig: d.KeepAliveConfig,
			})
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		listenAt: e.b.Listen,
	}
}
