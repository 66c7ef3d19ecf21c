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

// TestSDPRefusals checks that invalid options are rejected with the reason and status 2.
func TestSDPRefusals(t *testing.T) {
	quiet(t)
	for line, text := range map[string]string{
		"sdp nosuch":                             "unknown command \"nosuch\" of `softrnic sdp`; want one of cat, proxy",
		"sdp proxy":                              "--listen: missing; give the address to listen at",
		"sdp proxy --listen tcp::1":              "--to: missing; give the address to connect to",
		"sdp proxy --listen nowhere":             "want sdp:[HOST]:PORT or tcp:[HOST]:PORT, for example sdp:192.0.2.1:7471",
		"sdp proxy --listen udp:1":               "unknown network udp: want sdp:[HOST]:PORT or tcp:[HOST]:PORT",
		"sdp proxy --listen tcp::1 --to sdp:h":   "want sdp:[HOST]:PORT or tcp:[HOST]:PORT",
		"sdp proxy --listen tcp::1 --to sdp:h:0": "sdp:h:0: port is missing",
		"sdp proxy --listen tcp::1 --to tcp::80": "tcp::80: host is missing",
		"sdp proxy --flow-control fast":          "nic, rdma or credit",
		"sdp proxy --buffers -1":                 "--buffers -1: want 1 to 16384 of them",
		"sdp proxy --buffers 0":                  "--buffers 0: want 1 to 16384",
		"sdp proxy --buffers 16385":              "--buffers 16385: want 1 to 16384",
		"sdp cat -l 1 --buffer-size 0":           "--buffer-size 0: want 64 to 16777216 bytes",
		"sdp cat -l 1 --buffer-size 63":          "--buffer-size 63: want 64 to 16777216 bytes",
		"sdp cat -l 1 --window 0":                "--window 0: want 1 to 1048576 bytes, half of all buffers",
		"sdp cat -l 1 --window 1MiB --buffers 1": "--window 1048576: want 1 to 32768 bytes, half of all buffers",
		"sdp cat -l 1 --zero-copy -5":            "--zero-copy -5: want a number of bytes, at least 1, or -1 for never",
		"sdp cat -l 1 --zero-copy 0":             "--zero-copy 0: want a number of bytes",
		"sdp proxy --keepalive 0s":               "--keepalive 0s: want a time such as 30s, or -1s for never",
		"sdp proxy --keepalive -5s":              "--keepalive -5s: want a time",
		"sdp proxy --grace 0s":                   "--grace 0s: want a time such as 5s",
		"sdp proxy --dial-timeout -1s":           "softrnic: --dial-timeout -1s: want a time such as 5s",
		"sdp proxy --buffer-size 64KB":           `"64KB" is not a number like 64, 4K or 1MiB`,
		"sdp proxy here":                         "takes no argument",
		"sdp cat":                                "the address of the peer is missing: want `softrnic sdp cat HOST PORT",
		"sdp cat 7471":                           `"7471": want a host and a port`,
		"sdp cat 127.0.0.1 0":                    `"127.0.0.1 0": port is missing`,
		"sdp cat :1":                             `":1": host is missing`,
		"sdp cat -l a b c":                       `unexpected argument "c"`,
		"sdp cat tcp:127.0.0.1:1":                "tcp:127.0.0.1:1: want an address of SDP",
		"sdp cat [::1 7471":                      `"[::1:7471": want sdp:[HOST]:PORT`,
		"sdp cat [::1] ssh":                      `"[::1]:ssh": port "ssh": want 0 to 65535`,
		"sdp cat 127.0.0.1 ssh":                  `port "ssh": want 0 to 65535`,
		"sdp cat 127.0.0.1 1 --json":             "--json: not supported",
		"sdp cat -l 1 --impair slowly":           "--impair: ",

		"sdp proxy --buffers 65 --buffer-size 16MiB": "--buffers 65 of --buffer-size 16777216: want at most 1 GiB",
	} {
		t.Run(line, func(t *testing.T) {
			status, stdout, stderr := run(t, newApp(nil, nil), line)
			require.Equal(t, 2, status, stderr)
			require.Contains(t, stderr, text)
			require.Empty(t, stdout)
		})
	}
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
	p := &background{cmd: exec.CommandContext(ctx, os.Args[0], strings.Fields(line)...)}
	p.cmd.Env = append(os.Environ(), commandEnv+"=1")
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
	client := exec.CommandContext(ctx, os.Args[0], "sdp", "cat", "127.93.2.2", "7471")
	client.Env = append(os.Environ(), commandEnv+"=1")
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
	server := exec.CommandContext(ctx, os.Args[0], "sdp", "cat", "-l", "-v", "127.93.2.3", "7471")
	server.Env = append(os.Environ(), commandEnv+"=1")
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	diag, err := server.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	log := bufio.NewReader(diag)
	_, err = log.ReadString('\n') // it listens
	require.NoError(t, err)
	client := exec.CommandContext(ctx, os.Args[0], "sdp", "cat", "127.93.2.3", "7471")
	client.Env = append(os.Environ(), commandEnv+"=1")
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
