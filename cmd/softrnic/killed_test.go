package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/rnic"
)

// watched is a process of the command whose outputs are read while it runs.
type watched struct {
	cmd       *exec.Cmd
	out, diag *bufio.Reader
}

// startWatched starts the command on a device with the given address, or any.
func startWatched(t *testing.T, ctx context.Context, addr, impair, line string) *watched {
	t.Helper()
	cmd := command(ctx, line)
	cmd.Env = append(cmd.Env, rnic.EnvImpair+"="+impair, rnic.EnvAddr+"="+addr)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	diag, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &watched{cmd, bufio.NewReader(out), bufio.NewReader(diag)}
}

// readUntil reads lines until one contains the sign.
func readUntil(t *testing.T, r *bufio.Reader, sign string) {
	t.Helper()
	var before bytes.Buffer
	for {
		line, err := r.ReadString('\n')
		require.NoError(t, err, "no %q in %q", sign, &before)
		if before.WriteString(line); strings.Contains(line, sign) {
			return
		}
	}
}

// TestKilledEnds kills one end of each tool over RDMA-CM in the middle of a test. The other end,
// which waits for a message and has nothing to send, exits within seconds with status 1 and the
// reason.
func TestKilledEnds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ICMP errors reach the adapter on Linux only")
	}
	quiet(t)
	cases := []struct {
		server, serverImpair, client, clientImpair string
		sign                                       string // on stdout of an end in the middle of a test
		atServer                                   bool
	}{
		{"rping -s -a %s", "", "rping -c -a %s -v", "", "ping data", false},
		{"ucmatose -b %s -a 20", "drop RC_SEND", "ucmatose -s %s", "", "receiving data transfers", false},
		{"udaddy -b %s", "", "udaddy -s %s", "drop 1st UD_SEND_ONLY_IMM", "receiving data transfers", false},
		{"perf read_bw -R -a --addr %s", "", "perf read_bw -R -a -n 2000 %s", "", "  2000  ", false},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	left := make([]*watched, 2*len(cases))
	begins := make([]time.Time, len(left))
	for i := range left {
		c, addr := cases[i/2], fmt.Sprintf("127.93.3.%d", i+1)
		server := startWatched(t, ctx, "", c.serverImpair, fmt.Sprintf(c.server, addr))
		readUntil(t, server.diag, "waiting for a client")
		own := ownaddr.Host(byte(100 + i)).String() // which stays free when it is killed
		client := startWatched(t, ctx, own, c.clientImpair, fmt.Sprintf(c.client, addr))
		middle := client
		if c.atServer {
			middle = server
		}
		readUntil(t, middle.out, c.sign)
		victim := client
		if left[i] = server; i%2 == 1 {
			victim, left[i] = server, client
		}
		require.NoError(t, victim.cmd.Process.Kill())
		begins[i] = time.Now()
		go io.Copy(io.Discard, left[i].out)
	}
	for i, p := range left {
		diag, err := io.ReadAll(p.diag)
		require.NoError(t, err)
		took := time.Since(begins[i])
		var exit *exec.ExitError
		require.True(t, errors.As(p.cmd.Wait(), &exit), "%s", diag)
		require.Equal(t, 1, exit.ExitCode(), "%s", diag)
		require.Contains(t, string(diag), "no adapter is open at that port")
		require.Less(t, took, 15*time.Second) // 1 s on an idle machine, 30 s without the watch
	}
}
