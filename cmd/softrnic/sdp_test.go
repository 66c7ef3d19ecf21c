package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/sdpproxy"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
)

// TestSDPHelp checks the text and the defaults in the help.
func TestSDPHelp(t *testing.T) {
	quiet(t)
	for _, line := range []string{"sdp proxy", "sdp cat"} {
		status, stdout, _ := run(t, newApp(nil, nil), line+" --help")
		require.Zero(t, status)
		require.Contains(t, stdout, "softrnic "+line)
		require.Contains(t, stdout, "An SDP listener has the adapter's address")
		require.Regexp(t, `--buffers number .*\(default 32\)`, stdout)
		require.Regexp(t, `--zero-copy bytes .*\(default 1048576\)`, stdout)
	}
}

// background is a command that runs until it is interrupted.
type background struct {
	cmd  *exec.Cmd
	out  bytes.Buffer
	diag *bufio.Reader
}

func inBackground(t *testing.T, ctx context.Context, line string) *background {
	t.Helper()
	p := &background{cmd: command(ctx, line)}
	p.cmd.Stdout = &p.out
	diag, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	p.diag = bufio.NewReader(diag)
	require.NoError(t, p.cmd.Start())
	return p
}

// interrupt interrupts the command as a user does, and returns its remaining diagnostics.
func (p *background) interrupt(t *testing.T) (rest string) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	text, err := io.ReadAll(p.diag)
	require.NoError(t, err)
	require.NoError(t, p.cmd.Wait(), "%s", text)
	return string(text)
}

// TestSDPProcesses runs the example of the help: two proxies, and a TCP program at either end.
func TestSDPProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted")
	}
	quiet(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(c, c)
		c.Close()
	}()

	proxy := func(flags string) (p *background, at string) {
		p = inBackground(t, ctx, "sdp proxy "+flags)
		line, err := p.diag.ReadString('\n')
		require.NoError(t, err)
		at, _, ok := strings.Cut(line, " to ")
		require.True(t, ok, line)
		return p, at
	}
	far, at := proxy("--listen sdp:127.93.2.1:0 --flow-control credit --to tcp:" + l.Addr().String())
	require.Regexp(t, `^sdp:127\.93\.2\.1:\d+$`, at)
	near, at := proxy("--json --listen tcp:127.0.0.1:0 --buffers 4 --buffer-size 8192 --window 4000 --zero-copy -1 --to " + at)

	c, err := net.Dial("tcp", strings.TrimPrefix(at, "tcp:"))
	require.NoError(t, err)
	_, err = io.WriteString(c, "through two processes")
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	text, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "through two processes", string(text))
	require.NoError(t, c.Close())
	require.NoError(t, l.Close())
	c, err = net.Dial("tcp", strings.TrimPrefix(at, "tcp:"))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.NoError(t, c.Close())

	require.Contains(t, near.interrupt(t), "connection 2 of tcp:127.0.0.1:")
	require.Contains(t, far.interrupt(t), "connect: connection refused")
	require.Equal(t, "2 connections, 1 failed; 21 bytes sent, 21 received\n", far.out.String())
	var totals sdpproxy.Totals
	require.NoError(t, json.Unmarshal(near.out.Bytes(), &totals))
	require.Equal(t, sdpproxy.Totals{Connections: 2, Failed: 1, BytesTo: 21, BytesFrom: 21}, totals)
}

// TestSDPCat runs the example in the help of cat.
func TestSDPCat(t *testing.T) {
	quiet(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := inBackground(t, ctx, "sdp cat -l -v 127.93.2.2 7471")
	line, err := server.diag.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "listening at sdp:127.93.2.2:7471\n", line)
	client := command(ctx, "sdp cat 127.93.2.2 7471")
	client.Stdin = strings.NewReader("hello\n")
	text, err := client.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Empty(t, text)
	rest, err := io.ReadAll(server.diag)
	require.NoError(t, err)
	require.NoError(t, server.cmd.Wait())
	require.Equal(t, "hello\n", server.out.String())
	require.Regexp(t, `^connected to sdp:127\.\S+\n(?s:.*)received 6 bytes\n`, string(rest))
}

// TestSDPCatWithoutReader checks that the peer of cat is notified at once if the output of cat is
// closed, instead of after a timeout.
func TestSDPCatWithoutReader(t *testing.T) {
	quiet(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := command(ctx, "sdp cat -l -v 127.93.2.3 7471")
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	diag, err := server.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	log := bufio.NewReader(diag)
	_, err = log.ReadString('\n') // it listens
	require.NoError(t, err)
	client := command(ctx, "sdp cat 127.93.2.3 7471")
	client.Stdin = endless{}
	var said bytes.Buffer
	client.Stderr = &said
	require.NoError(t, client.Start())
	_, err = io.ReadFull(out, make([]byte, 1000))
	require.NoError(t, err)
	require.NoError(t, out.Close())
	require.Error(t, client.Wait())
	require.Contains(t, said.String(), "sdp: connection reset")
	require.NotContains(t, said.String(), "no acknowledgement")
	rest, err := io.ReadAll(log)
	require.NoError(t, err)
	require.Error(t, server.Wait())
	require.Contains(t, string(rest), "broken pipe")
}

// endless is an input without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// tcpEnds are the two ends of a connection through a pair of proxies.
type tcpEnds struct{ client, server *net.TCPConn }

// proxyPair is two proxies, each a process, between a TCP client and a TCP server.
type proxyPair struct {
	near, far *background
	address   string // of near
	server    net.Listener
}

func startProxyPair(t *testing.T, ctx context.Context) *proxyPair {
	t.Helper()
	start := func(flags string) (p *background, at string) {
		p = inBackground(t, ctx, "sdp proxy --keepalive 200ms --dial-timeout 500ms "+flags)
		t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
		line, err := p.diag.ReadString('\n')
		require.NoError(t, err)
		at, _, ok := strings.Cut(line, " to ")
		require.True(t, ok, line)
		return p, at
	}
	p := &proxyPair{}
	var err error
	p.server, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { p.server.Close() })
	var at string
	p.far, at = start("--listen sdp::0 --to tcp:" + p.server.Addr().String())
	p.near, at = start("--listen tcp:127.0.0.1:0 --to " + at)
	p.address = strings.TrimPrefix(at, "tcp:")
	return p
}

// connect opens a connection through both proxies, and checks that bytes pass.
func (p *proxyPair) connect(t *testing.T) (e tcpEnds) {
	t.Helper()
	c, err := net.Dial("tcp", p.address)
	require.NoError(t, err)
	s, err := p.server.Accept()
	require.NoError(t, err)
	e = tcpEnds{c.(*net.TCPConn), s.(*net.TCPConn)}
	for _, c := range []*net.TCPConn{e.client, e.server} {
		t.Cleanup(func() { c.Close() })
		require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	}
	_, err = io.WriteString(e.server, "x")
	require.NoError(t, err)
	_, err = io.ReadFull(e.client, make([]byte, 1))
	require.NoError(t, err)
	return e
}

// stream writes until a write fails, and returns the error.
func stream(c net.Conn) error {
	for b := make([]byte, 64<<10); ; {
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
}

// drain reads until a read fails, and returns the error, io.EOF at the end of the stream.
func drain(c net.Conn) error {
	_, err := io.Copy(io.Discard, struct{ io.Reader }{c})
	if err == nil {
		err = io.EOF
	}
	return err
}

// TestSDPProxyKilled kills one of two proxies: in every state of a connection the other proxy
// resets its TCP connection, so that truncated data does not look complete.
func TestSDPProxyKilled(t *testing.T) {
	quiet(t)
	for _, role := range []string{"tcp to sdp", "sdp to tcp"} { // of the remaining proxy
		t.Run(role, func(t *testing.T) {
			t.Parallel() // it waits most of the time
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			p := startProxyPair(t, ctx)
			end, victim, left := func(e tcpEnds) *net.TCPConn { return e.client }, p.far, p.near
			if role == "sdp to tcp" {
				end, victim, left = func(e tcpEnds) *net.TCPConn { return e.server }, p.near, p.far
			}
			other := func(e tcpEnds) *net.TCPConn {
				if end(e) == e.client {
					return e.server
				}
				return e.client
			}
			type outcome struct {
				what string
				err  error
			}
			outcomes := make(chan outcome)
			watch := func(what string, f func(net.Conn) error, c net.Conn) {
				go func() { outcomes <- outcome{what, f(c)} }()
			}
			idle, download, upload, half := p.connect(t), p.connect(t), p.connect(t), p.connect(t)
			go stream(other(download))
			go drain(other(upload))
			require.NoError(t, end(half).CloseWrite())
			require.Equal(t, io.EOF, drain(other(half)))
			watch("reads, and the other end is silent", drain, end(idle))
			watch("reads a stream", drain, end(download))
			watch("reads after its own end", drain, end(half))
			watch("writes a stream", stream, end(upload))

			killed := time.Now()
			require.NoError(t, victim.cmd.Process.Kill())
			_ = victim.cmd.Wait()
			for range 4 {
				o := <-outcomes
				reset := errors.Is(o.err, syscall.ECONNRESET) || o.what == "writes a stream" && errors.Is(o.err, syscall.EPIPE)
				require.True(t, reset, "%s: %v", o.what, o.err)
				t.Logf("%s: %v after the kill: %v", o.what, time.Since(killed).Round(time.Millisecond), o.err)
			}
			if left == p.near {
				c, err := net.Dial("tcp", p.address)
				require.NoError(t, err)
				defer c.Close()
				began := time.Now()
				_, err = c.Read(make([]byte, 1))
				require.ErrorIs(t, err, syscall.ECONNRESET)
				t.Logf("a new connection: reset after %v", time.Since(began).Round(time.Millisecond))
			}
			log := left.interrupt(t)
			require.Contains(t, log, "connection 1 of", "a peer that has died is worth a line")
		})
	}
}

// TestSDPProxyClientGone closes connections as clients do that need no more data: with unread
// bytes, and by a reset. Only --verbose logs that.
func TestSDPProxyClientGone(t *testing.T) {
	quiet(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := startProxyPair(t, ctx)
	for range 2 {
		e := p.connect(t)
		ended := make(chan error)
		go func() { ended <- stream(e.server) }()
		_, err := io.ReadFull(e.client, make([]byte, 1<<20))
		require.NoError(t, err)
		require.NoError(t, e.client.Close())
		require.Error(t, <-ended)
	}
	e := p.connect(t)
	require.NoError(t, e.client.SetLinger(0))
	require.NoError(t, e.client.Close())
	require.Equal(t, syscall.ECONNRESET, errno(drain(e.server)))
	for _, proxy := range []*background{p.near, p.far} {
		require.Empty(t, proxy.interrupt(t))
		require.Regexp(t, "3 connections, 3 failed", proxy.out.String())
	}
}

func errno(err error) (n syscall.Errno) {
	errors.As(err, &n)
	return n
}

// TestSDPProxyTimes checks that the defaults give 5 s: a peer is probed an eighth of the keepalive
// late at most, and the device's retries take about 2 s.
func TestSDPProxyTimes(t *testing.T) {
	const retries = 2500 * time.Millisecond
	require.Less(t, sockets.KeepAlive*9/8+retries, 5*time.Second)
	require.Less(t, sdpproxy.DefaultDialTimeout, 5*time.Second)
	_, help, _ := run(t, newApp(nil, nil), "sdp proxy --help")
	require.Regexp(t, `--keepalive time .*\(default 1\.5s\)`, help)
	require.Regexp(t, `--dial-timeout .*\(default 4s\)`, help)
}
