//go:build unix

package control_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab/control"
)

const patience = time.Minute // bound for events that must happen

// serveConn starts a server until the test ends.
func serveConn(t testing.TB) control.Client {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- control.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
	})
	return control.Client{Addr: l.Addr().String()}
}

func TestCommand(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := serveConn(t)
	var stdout, stderr bytes.Buffer
	p, err := c.Start(ctx, control.Command{Args: []string{"sh", "-c", "cat; echo $WORD; echo bad >&2"}, Env: []string{"WORD=good"}}, &stdout, &stderr)
	require.NoError(t, err)
	require.NoError(t, p.Wait())
	require.Equal(t, "good\n", stdout.String())
	require.Equal(t, "bad\n", stderr.String())
}

func TestCommandStatus(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := serveConn(t)
	for script, code := range map[string]int{"exit 3": 3, "kill -9 $$": 137} {
		var out bytes.Buffer
		p, err := c.Start(ctx, control.Command{Args: []string{"sh", "-c", script}}, &out, &out)
		require.NoError(t, err)
		var exit *control.ExitError
		require.ErrorAs(t, p.Wait(), &exit)
		require.Equal(t, code, exit.Code, script)
	}
	p, err := c.Start(ctx, control.Command{Args: []string{"/no/such/program"}}, &bytes.Buffer{}, &bytes.Buffer{})
	require.NoError(t, err)
	require.ErrorContains(t, p.Wait(), "no such file")
	p, err = c.Start(ctx, control.Command{}, &bytes.Buffer{}, &bytes.Buffer{})
	require.NoError(t, err)
	require.ErrorContains(t, p.Wait(), "nothing to do")
}

// TestKillTakesChildren checks that children of a killed process end, by a pipe that a child holds
// open.
func TestKillTakesChildren(t *testing.T) {
	c := serveConn(t)
	for i, kill := range []func(*control.Process, context.CancelCauseFunc){
		func(p *control.Process, _ context.CancelCauseFunc) { p.Kill() },
		func(_ *control.Process, cancel context.CancelCauseFunc) { cancel(errors.New("enough")) },
	} {
		fifo := filepath.Join(t.TempDir(), fmt.Sprint(i))
		require.NoError(t, syscall.Mkfifo(fifo, 0o600))
		ctx, cancel := context.WithCancelCause(context.Background())
		var out bytes.Buffer
		p, err := c.Start(ctx, control.Command{Args: []string{"sh", "-c", `sleep 1000 >"$0" & wait`, fifo}}, &out, &out)
		require.NoError(t, err)
		f, err := os.Open(fifo) // blocks until there is a writer
		require.NoError(t, err)
		kill(p, cancel)
		require.Error(t, p.Wait())
		n, err := f.Read(make([]byte, 1)) // until the last writer has ended
		require.Zero(t, n, "%v", err)
		require.NoError(t, f.Close())
		cancel(nil)
	}
}

func TestPut(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := serveConn(t)
	path := filepath.Join(t.TempDir(), "a", "b")
	for _, f := range []control.File{{Path: path, Mode: 0o600, Data: []byte("first")}, {Path: path, Mode: 0o755, Data: []byte("2")}} {
		require.NoError(t, c.WriteFile(ctx, f))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, f.Data, got)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, f.Mode, info.Mode())
	}
	require.ErrorContains(t, c.WriteFile(ctx, control.File{Path: path + "/c"}), "not a directory")
}

func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := control.Client{Addr: l.Addr().String()}
	require.NoError(t, l.Close())
	_, err = c.Start(context.Background(), control.Command{Args: []string{"true"}}, nil, nil)
	require.Error(t, err)
}
