package sdp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// peerEnv makes the test binary a peer; its value is the flow control.
const peerEnv = "SDP_TEST_PEER"

// peerProcess is a program that communicates by SDP. It prints its address. The first line of a
// connection is its task.
func peerProcess() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "peer:", err)
			os.Exit(1)
		}
	}
	dev, err := rnic.Open(rnic.Options{Addr: ownaddr.Device(92), Logger: slog.New(slog.DiscardHandler)}) // stays free
	fail(err)
	s, err := sdp.New(dev, sdp.Options{})
	fail(err)
	l, err := s.Listen("sdp", ":0")
	fail(err)
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the test has ended
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		fail(err)
		go func() {
			r := bufio.NewReader(c)
			line, err := r.ReadString('\n')
			fail(err)
			switch strings.TrimSpace(line) {
			case "half a frame":
				_, err := c.Write(frame()[:frameBytes/2])
				fail(err)
			case "exit":
				os.Exit(0)
			case "echo":
				_, _ = io.Copy(c, r)
				c.Close()
			case "nothing":
			}
		}()
	}
}

// A frame has a header with its length.
const frameBytes = 1000

func frame() []byte {
	return append([]byte{frameBytes >> 8, frameBytes & 255}, make([]byte, frameBytes-2)...)
}

// peer is a peer process.
type peer struct {
	cmd  *exec.Cmd
	addr netip.AddrPort
}

func startPeer(t *testing.T) *peer {
	t.Helper()
	p := &peer{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), peerEnv+"=1")
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	p.addr, err = netip.ParseAddrPort(strings.TrimSpace(line))
	require.NoError(t, err)
	return p
}

// dial connects to the process and sends the task.
func (p *peer) dial(t *testing.T, s *sdp.Stack, d sdp.FlowControl, what string) *sdp.Conn {
	t.Helper()
	c, err := s.DialAddr(t.Context(), p.addr, sdp.Dialer{FlowControl: &d})
	require.NoError(t, err)
	require.Equal(t, d, c.FlowControl())
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(hang)))
	_, err = fmt.Fprintln(c, what)
	require.NoError(t, err)
	return c
}

// requireGone checks the error of a connection whose peer has terminated: it has the cause and the
// peer.
func (p *peer) requireGone(t *testing.T, op string, err error) {
	t.Helper()
	require.ErrorIs(t, err, sdp.ErrReset)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NotErrorIs(t, err, io.EOF)
	var e *net.OpError
	require.ErrorAs(t, err, &e)
	require.Equal(t, op, e.Op)
	require.Equal(t, p.addr.String(), e.Addr.String())
	require.ErrorContains(t, err, "no acknowledgement from "+p.addr.Addr().String())
}

// TestPeerDies kills the peer in the middle of a frame: reads and writes fail, and connections to
// other peers continue.
func TestPeerDies(t *testing.T) {
	for name, c := range map[string]struct {
		how    string
		design sdp.FlowControl
	}{
		"killed, nic": {"killed", sdp.NIC}, "killed, rdma": {"killed", sdp.RDMA}, "killed, credit": {"killed", sdp.Credit},
		"exits": {"exits", sdp.NIC}, "frozen": {"frozen", sdp.NIC},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			if c.how == "frozen" && freeze == nil {
				t.Skip("this system cannot stop a process")
			}
			peerDies(t, c.how, c.design)
		})
	}
}

func peerDies(t *testing.T, how string, d sdp.FlowControl) {
	p := startPeer(t)
	s := stack(t, rnic.Options{}, sdp.Options{KeepAlive: 100 * time.Millisecond})
	reader := p.dial(t, s, d, "half a frame")
	header := make([]byte, 2)
	_, err := io.ReadFull(reader, header)
	require.NoError(t, err)
	require.Equal(t, frame()[:2], header)
	writer := p.dial(t, s, d, "nothing")
	idle := p.dial(t, s, d, "echo")

	other := startPeer(t)
	works := other.dial(t, s, d, "echo")
	conns := []*sdp.Conn{reader, writer, idle, works}
	failed := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(reader, make([]byte, frameBytes-2))
		failed <- err
	}()
	switch how {
	case "killed":
		require.NoError(t, p.cmd.Process.Kill())
	case "exits":
		conns = append(conns, p.dial(t, s, d, "exit"))
	case "frozen":
		require.NoError(t, freeze(p.cmd.Process))
	}
	err = nil
	for buf := make([]byte, 10_000); err == nil; {
		_, err = writer.Write(buf)
	}
	p.requireGone(t, "write", err)
	if how == "killed" { // the port is closed
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
	p.requireGone(t, "read", <-failed)
	_, err = writer.Write([]byte("more"))
	p.requireGone(t, "write", err)
	_, err = idle.Read(make([]byte, 1))
	p.requireGone(t, "read", err)

	_, err = works.Write([]byte("still there?"))
	require.NoError(t, err)
	require.NoError(t, works.CloseWrite())
	text, err := io.ReadAll(works)
	require.NoError(t, err)
	require.Equal(t, "still there?", string(text))
	for _, c := range conns {
		require.NoError(t, c.Close())
	}
	require.NoError(t, s.Shutdown(t.Context())) // no call waits long for a terminated peer
}

// TestDialDeadPeer checks that a dial of a terminated peer does not wait for ever.
func TestDialDeadPeer(t *testing.T) {
	p := startPeer(t)
	s := stack(t, rnic.Options{}, sdp.Options{}) // at another address than the peer's
	require.NoError(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.DialContext(ctx, "sdp", p.addr.String())
	require.Error(t, err)
	var e *net.OpError
	require.ErrorAs(t, err, &e)
	t.Log(err)
}
