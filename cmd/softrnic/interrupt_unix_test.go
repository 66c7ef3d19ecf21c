//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// awaitLine starts the command as a process, and returns it with the text that the pattern's group
// matches in its first line on stderr.
func awaitLine(t *testing.T, ctx context.Context, line, pattern string) (cmd *exec.Cmd, found string, rest *bufio.Reader) {
	t.Helper()
	cmd = command(ctx, line)
	diag, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	rest = bufio.NewReader(diag)
	text, err := rest.ReadString('\n')
	require.NoError(t, err)
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.NotNil(t, m, text)
	return cmd, m[1], rest
}

// TestInterruptedProcesses interrupts a waiting server, and a test in the middle, by signals: the
// exit status is that of the signal, and the test reports its measurements.
func TestInterruptedProcesses(t *testing.T) {
	quiet(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status := func(cmd *exec.Cmd) int {
		var exit *exec.ExitError
		require.True(t, errors.As(cmd.Wait(), &exit))
		return exit.ExitCode()
	}
	for _, c := range []struct{ line, pattern string }{
		{"pingpong rc -p 0", `waiting for a client on TCP port (\d+)\n`},
		{"perf send_bw -p 0", `waiting for a client on TCP port (\d+)\n`},
		{"rping -s -a 127.93.2.1", `waiting for a client on 127.93.2.1:(7174)\n`},
		{"ucmatose -b 127.93.2.2", `waiting for a client on 127.93.2.2:(7471)\n`},
		{"udaddy -b 127.93.2.3", `waiting for a client on 127.93.2.3:(7174)\n`},
	} {
		cmd, _, rest := awaitLine(t, ctx, c.line, c.pattern)
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		text, _ := rest.ReadString('\n')
		require.Contains(t, text, "ended by a signal (terminated)", c.line)
		require.Equal(t, 128+15, status(cmd), c.line)
	}

	for _, c := range []struct{ server, client, form string }{
		{"pingpong rc -n 100000000", "pingpong rc -n 100000000", `\d+ iters in \d+\.\d+ seconds = `},
		{"perf send_bw -n 10000000 -s 1K", "perf send_bw -n 10000000 -s 1KiB", `\n 1024 +\d+ +\d`},
	} {
		server, port, _ := awaitLine(t, ctx, c.server+" -p 0", `TCP port (\d+)\n`)
		client := command(ctx, fmt.Sprintf("%s -p %s localhost", c.client, port))
		started := make(chan struct{})
		out := &untilWriter{text: "remote address", times: 1, end: func() { close(started) }}
		client.Stdout = out
		require.NoError(t, client.Start())
		<-started
		time.AfterFunc(100*time.Millisecond, func() { client.Process.Signal(os.Interrupt) })
		require.Equal(t, 128+2, status(client))
		require.Regexp(t, c.form, out.b.String())
		require.Equal(t, 1, status(server))
	}
}
