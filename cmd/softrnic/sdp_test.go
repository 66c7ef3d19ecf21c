package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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
