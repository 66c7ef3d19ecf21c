//go:build unix

package debugclient

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/debug"
)

// leaveSocket leaves a socket without a listener, as a killed process does.
func leaveSocket(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.FileExists(t, path)
}

func TestAuto(t *testing.T) {
	session := shortDir(t)
	t.Setenv("XDG_RUNTIME_DIR", session)
	t.Setenv("TMPDIR", session) // apart from the user's processes
	a, b := open(t, "a"), open(t, "b")
	serve(t, a, debug.Auto)
	serve(t, b, debug.Auto)
	info, err := os.Stat(filepath.Join(session, "softrnic"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	peers, err := Discover(t.Context())
	require.NoError(t, err)
	require.Len(t, peers, 2)
	for i, name := range []string{"a", "b"} {
		require.NoError(t, peers[i].Err)
		require.Equal(t, name, peers[i].Report.Device.Name)
		require.Equal(t, os.Getpid(), peers[i].PID)
	}
}

// TestAutoWithoutSession checks that the temporary directory is used without a session, and that
// tools search it as well.
func TestAutoWithoutSession(t *testing.T) {
	tmp := shortDir(t)
	t.Setenv("TMPDIR", tmp)
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(tmp, "gone"))
	c := serve(t, open(t, "a"), debug.Auto)
	require.True(t, strings.HasPrefix(c.Addr(), "unix:"+tmp+"/softrnic-"), c.Addr())
	t.Setenv("XDG_RUNTIME_DIR", "")
	peers, err := Discover(t.Context())
	require.NoError(t, err)
	require.Len(t, peers, 1)
}

// TestDiscoverStale checks that the sockets of dead processes, and only these, are removed.
func TestDiscoverStale(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", shortDir(t))
	t.Setenv("TMPDIR", shortDir(t)) // apart from the user's processes
	serve(t, open(t, "live"), debug.Auto)
	dir := debug.Directories()[0]
	gone := exec.Command(os.Args[0], "-test.run=^$")
	require.NoError(t, gone.Run())

	dead := filepath.Join(dir, fmt.Sprintf("%d-0.sock", gone.Process.Pid))
	opening := filepath.Join(dir, fmt.Sprintf("%d-0.sock", os.Getppid())) // bound and not listening yet
	foreign := filepath.Join(dir, "notes.sock")
	for _, path := range []string{dead, opening, foreign} {
		leaveSocket(t, path)
	}
	peers, err := Discover(t.Context())
	require.NoError(t, err)
	require.NoFileExists(t, dead)
	require.FileExists(t, opening)
	require.FileExists(t, foreign)
	require.Len(t, peers, 2)
	for _, p := range peers {
		require.Equal(t, p.PID == os.Getpid(), p.Err == nil, "%+v", p)
	}
}
