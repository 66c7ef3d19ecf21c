package rnic

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// getSnapshot requests a path of a device's endpoint, which is on TCP.
func getSnapshot(t *testing.T, dev *Device) Snapshot {
	t.Helper()
	defer http.DefaultClient.CloseIdleConnections()
	res, err := http.Get("http://" + dev.DebugAddr() + "/stat")
	require.NoError(t, err)
	defer res.Body.Close()
	var s Snapshot
	require.NoError(t, json.NewDecoder(res.Body).Decode(&s))
	return s
}

// TestDebugEnvironment checks that the variable opens the endpoint of an unchanged program.
func TestDebugEnvironment(t *testing.T) {
	t.Setenv(EnvDebug, "127.0.0.1:0")
	dev, err := Open(Options{Name: "nic"})
	require.NoError(t, err)
	require.Equal(t, "nic", getSnapshot(t, dev).Device.Name)
	require.NoError(t, dev.Close())
	require.Empty(t, dev.DebugAddr())
	require.ErrorIs(t, dev.ServeDebug(DebugAuto), verbs.ErrClosed)

	dev, err = Open(Options{Debug: DebugOff})
	require.NoError(t, err)
	require.Empty(t, dev.DebugAddr(), "what the program says goes first")
	require.NoError(t, dev.Close())
}

// TestDebugAuto checks that each device has a socket in the directory that tools search.
func TestDebugAuto(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // t.TempDir is too long for a socket on macOS
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv(EnvDebug, DebugAuto)
	a, err := Open(Options{})
	require.NoError(t, err)
	b, err := Open(Options{})
	require.NoError(t, err)
	require.NotEqual(t, a.DebugAddr(), b.DebugAddr())
	sockets, err := filepath.Glob(filepath.Join(dir, "softrnic", "*.sock"))
	require.NoError(t, err)
	require.Len(t, sockets, 2)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	sockets, err = filepath.Glob(filepath.Join(dir, "softrnic", "*.sock"))
	require.NoError(t, err)
	require.Empty(t, sockets)
}

// TestDebugInUse checks that an endpoint of Options that is in use fails Open, and that one of the
// environment does not.
func TestDebugInUse(t *testing.T) {
	first, err := Open(Options{Debug: "127.0.0.1:0"})
	require.NoError(t, err)
	defer first.Close()
	_, err = Open(Options{Debug: first.DebugAddr()})
	require.ErrorContains(t, err, "serve debug endpoint")
	require.True(t, typed(err))

	t.Setenv(EnvDebug, first.DebugAddr())
	var log bytes.Buffer
	second, err := Open(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer second.Close()
	require.Empty(t, second.DebugAddr())
	require.Contains(t, log.String(), "debug endpoint not available")

	require.NoError(t, second.ServeDebug("127.0.0.1:0"))
	moved := second.DebugAddr()
	require.NoError(t, second.ServeDebug("127.0.0.1:0"))
	require.NotEqual(t, moved, second.DebugAddr())
	require.NoError(t, second.ServeDebug(DebugOff))
	require.Empty(t, second.DebugAddr())
	err = second.ServeDebug("192.0.2.1:80")
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.ErrorContains(t, err, "192.0.2.1 is not a loopback address")
}
