package oob_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hang is the time after which a test has failed.
const hang = time.Minute

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	t.Cleanup(cancel)
	return ctx
}

func listen(t *testing.T) *oob.Listener {
	l, err := oob.Listen(netip.Addr{}, 0)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func dial(t *testing.T, l *oob.Listener) *oob.Conn {
	c, err := oob.Dial(soon(t), netip.Addr{}, "127.0.0.1", l.Port(), hang)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// accept returns the function by which First accepts clients.
func accept(l *oob.Listener, timeout time.Duration) func(context.Context) (*oob.Conn, error) {
	return func(ctx context.Context) (*oob.Conn, error) { return l.Accept(ctx, timeout) }
}

// readHello reads a hello of five bytes.
func readHello(c *oob.Conn) (string, error) {
	b := make([]byte, 5)
	if err := c.Read(b, "read its hello"); err != nil {
		return "", err
	}
	if string(b) != "hello" {
		return "", oob.ProtocolErrorf(c.Peer(), "read its hello", "%q", b)
	}
	return string(b), nil
}

// drops collects the clients that First drops.
type drops struct {
	mu   sync.Mutex
	list []error
	more chan struct{}
}

func newDrops() *drops { return &drops{more: make(chan struct{}, 100)} }

func (d *drops) add(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, err)
	d.more <- struct{}{}
}

// wait returns when n clients were dropped.
func (d *drops) wait(t *testing.T, n int) {
	for range n {
		select {
		case <-d.more:
		case <-time.After(hang):
			t.Fatal("no client was dropped")
		}
	}
}

func (d *drops) count(kind error) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, err := range d.list {
		if errors.Is(err, kind) {
			n++
		}
	}
	return n
}

// TestSilentClientsDoNotBlock checks that clients that are silent, send an invalid hello or disconnect
// do not block a valid one.
func TestSilentClientsDoNotBlock(t *testing.T) {
	l, d := listen(t), newDrops()
	for range 3 {
		dial(t, l) // sends nothing
	}
	require.NoError(t, dial(t, l).Write([]byte("GET / HTTP/1.1\r\n"), "talk"))
	half := dial(t, l)
	require.NoError(t, half.Write([]byte("hel"), "talk"))
	require.NoError(t, half.Close())

	type taken struct {
		conn *oob.Conn
		err  error
	}
	result := make(chan taken)
	go func() {
		c, said, err := oob.AcceptFirst(soon(t), accept(l, hang), readHello, d.add)
		if said != "hello" && err == nil {
			err = errors.New(said)
		}
		result <- taken{c, err}
	}()
	d.wait(t, 2) // the two clients that are not silent
	good := dial(t, l)
	require.NoError(t, good.Write([]byte("hello"), "talk"))
	r := <-result
	require.NoError(t, r.err)
	defer r.conn.Close()
	require.Equal(t, 1, d.count(oob.ErrProtocol))
	require.Equal(t, 1, d.count(oob.ErrPeerClosed))
	require.Equal(t, d.count(oob.ErrNotFirst)+2, len(d.list), "the silent ones were too late, or not seen at all")

	// The connection stays open in both directions.
	require.NoError(t, r.conn.Write([]byte("yes"), "answer"))
	require.NoError(t, good.Read(make([]byte, 3), "hear"))
}

// TestSilenceIsBounded checks that clients that send too little are dropped.
func TestSilenceIsBounded(t *testing.T) {
	l, d := listen(t), newDrops()
	ctx, cancel := context.WithCancel(soon(t))
	done := make(chan error)
	go func() {
		_, _, err := oob.AcceptFirst(ctx, accept(l, 10*time.Millisecond), readHello, d.add)
		done <- err
	}()
	c := dial(t, l)
	require.NoError(t, c.Write([]byte("hell"), "talk"))
	d.wait(t, 1)
	require.Equal(t, 1, d.count(oob.ErrTimeout))
	require.ErrorContains(t, d.list[0], "4 of 5 bytes within 10ms")
	require.Error(t, c.Read(make([]byte, 1), "listen"), "the connection is closed")
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// TestFirstAgain calls First again on the same listener after it has returned a client.
func TestFirstAgain(t *testing.T) {
	l := listen(t)
	for range 3 {
		c := dial(t, l)
		require.NoError(t, c.Write([]byte("hello"), "talk"))
		got, _, err := oob.AcceptFirst(soon(t), accept(l, hang), readHello, func(err error) { t.Error(err) })
		require.NoError(t, err)
		require.NoError(t, got.Close())
		require.NoError(t, got.Close())
	}
}

func TestManyAtOnce(t *testing.T) {
	l, d := listen(t), newDrops()
	for range 100 { // more clients than the limit on simultaneous handshakes
		dial(t, l)
	}
	require.NoError(t, dial(t, l).Write([]byte("hello"), "talk"))
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	c, _, err := oob.AcceptFirst(ctx, accept(l, 50*time.Millisecond), readHello, d.add)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestReadEnds(t *testing.T) {
	l := listen(t)
	taken := make(chan *oob.Conn)
	go func() {
		c, _, err := oob.AcceptFirst(soon(t), accept(l, hang), readHello, func(error) {})
		if err != nil {
			close(taken)
			return
		}
		taken <- c
	}()
	ctx, cancel := context.WithCancel(context.Background())
	c, err := oob.Dial(ctx, netip.Addr{}, "127.0.0.1", l.Port(), 5*time.Millisecond)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Write([]byte("hello"), "talk"))
	server := <-taken
	require.NotNil(t, server)

	err = c.Read(make([]byte, 8), "read its answer")
	require.ErrorIs(t, err, oob.ErrTimeout)
	require.ErrorContains(t, err, "read its answer: peer timed out: 0 of 8 bytes within 5ms")

	require.NoError(t, server.Write([]byte("abc"), "talk"))
	require.NoError(t, server.Close())
	err = c.ReadNoTimeout(make([]byte, 8), "read its answer")
	require.ErrorIs(t, err, oob.ErrPeerClosed)
	require.ErrorContains(t, err, "after 3 of 8 bytes")

	cancel()
	require.ErrorIs(t, c.Read(make([]byte, 1), "read"), context.Canceled)
	var wrong *oob.PeerError
	require.ErrorAs(t, err, &wrong)
	require.True(t, strings.HasPrefix(wrong.Peer, "127.0.0.1:"))
}

func TestAddressesAndPorts(t *testing.T) {
	l := listen(t)
	_, err := oob.Listen(netip.Addr{}, l.Port())
	require.ErrorContains(t, err, "is in use by another server")

	require.False(t, dial(t, l).LocalIP().IsValid(), "the loopback interface has many addresses")

	// Dial from and to one address.
	one := netip.MustParseAddr("127.0.0.1")
	at, err := oob.Listen(one, 0)
	require.NoError(t, err)
	defer at.Close()
	c, err := oob.Dial(soon(t), one, "127.0.0.1", at.Port(), hang)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = oob.Listen(netip.MustParseAddr("203.0.113.1"), 0)
	require.ErrorContains(t, err, "203.0.113.1")

	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	_, err = oob.Dial(soon(t), netip.Addr{}, "127.0.0.1", port, hang)
	require.ErrorContains(t, err, "connect: ")
	require.ErrorContains(t, err, "start the server first")
}

func TestTermsCheck(t *testing.T) {
	mine := oob.Params{{"test", "send_bw"}, {"-c", "RC"}, {"-s", "65536"}}
	for _, c := range []struct {
		name string
		peer oob.Params
		want string
	}{
		{"same", oob.Params{{"test", "send_bw"}, {"-c", "RC"}, {"-s", "65536"}}, ""},
		{"other order", oob.Params{{"-s", "65536"}, {"-c", "RC"}, {"test", "send_bw"}}, ""},
		{"one value", oob.Params{{"test", "send_bw"}, {"-c", "UC"}, {"-s", "65536"}}, "-c is RC here and UC at the peer"},
		{"two values", oob.Params{{"test", "write_bw"}, {"-c", "RC"}, {"-s", "2"}},
			"test is send_bw here and write_bw at the peer, -s is 65536 here and 2 at the peer"},
		{"missing there", oob.Params{{"test", "send_bw"}, {"-c", "RC"}}, "-s is 65536 here and not set at the peer"},
		{"missing here", oob.Params{{"test", "send_bw"}, {"-c", "RC"}, {"-s", "65536"}, {"-b", "on"}}, "-b is not set here and on at the peer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			peer, err := oob.ParseParams(c.peer.Encode())
			require.NoError(t, err)
			require.Equal(t, c.peer, peer)
			err = mine.Check(peer)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, oob.ErrParams)
			require.EqualError(t, err, oob.ErrParams.Error()+": "+c.want)
		})
	}
}

// FuzzParseTerms checks that ParseTerms accepts only what Encode writes.
func FuzzParseTerms(f *testing.F) {
	f.Add(oob.Params{{Option: "-s", Value: "1"}}.Encode())
	f.Add([]byte(strings.Repeat("x", oob.ParamsLen)))
	f.Fuzz(func(t *testing.T, b []byte) {
		terms, err := oob.ParseParams(b)
		if err != nil {
			return
		}
		require.Equal(t, b, terms.Encode())
	})
}
