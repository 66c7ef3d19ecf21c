package sdpproxy_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sdpproxy"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/sdp"
)

// TestForward forwards many connections at a time, each to its end.
func TestForward(t *testing.T) {
	for _, d := range []sdp.FlowControl{sdp.NIC, sdp.RDMA, sdp.Credit} {
		t.Run(d.String(), func(t *testing.T) {
			const clients = 40
			near, far := between(t, serve(t, echo), sdp.Options{FlowControl: d})
			var all sync.WaitGroup
			var total uint64
			for i := range clients {
				rng := rand.New(rand.NewPCG(1, uint64(i)))
				size := rng.Int64N(1 << rng.IntN(22))
				total += uint64(size)
				c := near.dial(t)
				all.Go(func() {
					sent, came := sha256.New(), sha256.New()
					go func() {
						source := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{byte(i)}), size), sent)
						if _, err := io.Copy(c, source); err != nil {
							t.Error(err)
						}
						c.CloseWrite()
					}()
					n, err := io.Copy(came, c)
					if err != nil || n != size || !bytes.Equal(sent.Sum(nil), came.Sum(nil)) {
						t.Errorf("connection %d: %d of %d bytes returned: %v", i, n, size, err)
					}
				})
			}
			all.Wait()
			near.stopAndWait(t)
			far.stopAndWait(t)
			want := sdpproxy.Totals{Connections: clients, BytesTo: total, BytesFrom: total}
			require.Equal(t, want, near.totals)
			require.Equal(t, want, far.totals)
			require.Empty(t, near.log.String()+far.log.String())
		})
	}
}

// TestHalfClose has a server that replies when it has read the request to its end.
func TestHalfClose(t *testing.T) {
	near, _ := between(t, serve(t, func(c *net.TCPConn) {
		all, err := io.ReadAll(c)
		if err != nil {
			t.Error(err)
		}
		_, _ = c.Write(bytes.ToUpper(all))
	}), sdp.Options{})
	c := near.dial(t)
	_, err := c.Write([]byte("the whole question"))
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "THE WHOLE QUESTION", string(answer))

	// The other direction: the server closes first, and continues to read.
	heard := make(chan string, 1)
	near, _ = between(t, serve(t, func(c *net.TCPConn) {
		_, _ = c.Write([]byte("welcome"))
		c.CloseWrite()
		all, _ := io.ReadAll(c)
		heard <- string(all)
	}), sdp.Options{})
	c = near.dial(t)
	text, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "welcome", string(text))
	_, err = c.Write([]byte("thanks"))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Equal(t, "thanks", <-heard)
}

// TestReset checks that a reset is forwarded as a reset, so that half a reply does not look
// complete. Other connections continue.
func TestReset(t *testing.T) {
	near, far := between(t, serve(t, func(c *net.TCPConn) {
		line := make([]byte, 4)
		_, _ = io.ReadFull(c, line)
		if string(line) == "echo" {
			echo(c)
			return
		}
		_, _ = c.Write([]byte("half an ans"))
		_, _ = io.ReadFull(c, line) // the client has received it
		_ = c.SetLinger(0)
	}), sdp.Options{})
	other := near.dial(t)
	_, err := other.Write([]byte("echo1"))
	require.NoError(t, err)
	require.NoError(t, readFull(other, "1"))

	c := near.dial(t)
	_, err = c.Write([]byte("more"))
	require.NoError(t, err)
	require.NoError(t, readFull(c, "half an ans"))
	_, err = c.Write([]byte("more"))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 10))
	require.ErrorIs(t, err, syscall.ECONNRESET)

	_, err = other.Write([]byte("2"))
	require.NoError(t, err)
	require.NoError(t, readFull(other, "2"))
	require.NoError(t, other.CloseWrite())
	_, err = other.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	near.stopAndWait(t)
	far.stopAndWait(t)
	require.EqualValues(t, 1, near.totals.Failed)
	require.EqualValues(t, 1, far.totals.Failed)
	require.Regexp(t, `^connection 2 of tcp:\S+: .*sdp.*: sdp: connection reset.*\n$`, near.log.String())
	require.Regexp(t, `^connection 2 of sdp:\S+: .*: connection reset by peer\n$`, far.log.String())
}

func readFull(r io.Reader, want string) error {
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil {
		return err
	}
	if string(got) != want {
		return errors.New(string(got))
	}
	return nil
}

// TestNoServer checks that a connection that cannot be forwarded is closed, with the reason in
// the log, and that the next one is tried.
func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	near, far := betweenPatient(t, l.Addr(), sdp.Options{}, 5*time.Second) // without a server
	require.NoError(t, l.Close())
	for range 2 {
		near.requireReset(t)
	}
	far.stopAndWait(t)
	near.requireReset(t)
	near.stopAndWait(t)
	require.Equal(t, sdpproxy.Totals{Connections: 2, Failed: 2}, far.totals)
	require.Equal(t, sdpproxy.Totals{Connections: 3, Failed: 3}, near.totals)
	require.Contains(t, far.log.String(), "connect: connection refused")
	require.Contains(t, near.log.String(), "connection 3 of tcp:127.0.0.1:")
}

// TestEnd checks that existing connections can finish within the given time.
func TestEnd(t *testing.T) {
	to, err := sockets.ParseAddr(sockets.FormatAddr(serve(t, echo)))
	require.NoError(t, err)
	listen := sockets.Addr{Network: "sdp"}
	for name, c := range map[string]struct {
		grace time.Duration
		want  sdpproxy.Totals
	}{
		"enough": {time.Minute, sdpproxy.Totals{Connections: 1, BytesTo: 2, BytesFrom: 2}},
		"none":   {time.Nanosecond, sdpproxy.Totals{Connections: 1, Failed: 1, Cut: 1, BytesTo: 1, BytesFrom: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			open := make(chan int, 1)
			p := start(t, listen, to, sdpproxy.Options{Grace: c.grace, Ending: func(n int) { open <- n }})
			s := sockets.New(toolstest.Anywhere, sdp.Options{})
			defer func() { require.NoError(t, s.Close(t.Context())) }()
			conn, err := s.Dial(t.Context(), p.at)
			require.NoError(t, err)
			_, err = conn.Write([]byte("1"))
			require.NoError(t, err)
			require.NoError(t, readFull(conn, "1"))
			p.stop()
			require.Equal(t, 1, <-open)
			if c.grace == time.Minute {
				_, err := conn.Write([]byte("2"))
				require.NoError(t, err)
				require.NoError(t, readFull(conn, "2"))
				require.NoError(t, conn.CloseWrite())
				_, err = conn.Read(make([]byte, 1))
				require.Equal(t, io.EOF, err)
			} else {
				_, err := conn.Read(make([]byte, 1))
				require.ErrorIs(t, err, sdp.ErrReset)
				<-p.ended
				require.Contains(t, p.log.String(), "aborted at the end of the proxy")
			}
			require.NoError(t, conn.Close())
			p.stopAndWait(t)
			require.Equal(t, c.want, p.totals)
		})
	}
}

// TestRefusals checks the errors of invalid options.
func TestRefusals(t *testing.T) {
	in, out := sockets.Addr{Network: "tcp", Host: "127.0.0.1"}, sockets.Addr{Network: "sdp", Host: "127.0.0.1", Port: 7}
	for text, o := range map[string]sdpproxy.Options{
		"--listen: missing":             {To: out},
		"--to: missing":                 {Listen: in},
		"--to: sdp::7: host is missing": {Listen: in, To: sockets.Addr{Network: "sdp", Port: 7}},
		"device: none given":            {Listen: in, To: out},
		"no interface of this machine":  {Listen: sockets.Addr{Network: "sdp", Host: "203.0.113.1"}, To: out, DeviceSource: toolstest.Anywhere},
	} {
		_, err := sdpproxy.Run(t.Context(), o)
		require.ErrorContains(t, err, text)
	}
	var refused *option.Error
	_, err := sdpproxy.Run(t.Context(), sdpproxy.Options{})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "--listen", refused.Option)
}
