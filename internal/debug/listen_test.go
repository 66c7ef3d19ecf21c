//go:build unix

package debug

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// leave leaves a socket that nobody listens on, as a killed process does.
func leave(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.FileExists(t, path)
}

func TestUnixSocket(t *testing.T) {
	dev := open(t, "")
	path := filepath.Join(shortDir(t), "s")
	leave(t, path)
	s, err := Serve(dev, "unix:"+path)
	require.NoError(t, err, "what a dead process left is replaced")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	_, err = Serve(dev, "unix:"+path)
	require.ErrorIs(t, err, errLive)
	require.NoError(t, s.Close())
	require.NoFileExists(t, path)

	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err = Serve(dev, "unix:"+path)
	require.ErrorContains(t, err, "exists and is not a socket")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "precious", string(text))

	_, err = Serve(dev, "unix:"+filepath.Join(shortDir(t), "no", "s"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAuto(t *testing.T) {
	session := shortDir(t)
	t.Setenv("XDG_RUNTIME_DIR", session)
	a, b := open(t, "a"), open(t, "b")
	serve(t, a, Auto)
	serve(t, b, Auto)
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

// TestAutoWithoutSession falls back to the temporary directory, where tools
// look as well.
func TestAutoWithoutSession(t *testing.T) {
	tmp := shortDir(t)
	t.Setenv("TMPDIR", tmp)
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(tmp, "gone"))
	c := serve(t, open(t, "a"), Auto)
	require.True(t, strings.HasPrefix(c.Addr(), "unix:"+tmp+"/softrnic-"), c.Addr())
	t.Setenv("XDG_RUNTIME_DIR", "")
	peers, err := Discover(t.Context())
	require.NoError(t, err)
	require.Len(t, peers, 1)
}

func TestPrivateDirectory(t *testing.T) {
	dev := open(t, "")
	tmp := shortDir(t)
	t.Setenv("TMPDIR", tmp)
	t.Setenv("XDG_RUNTIME_DIR", "")
	dir := runtimeDirs()[0]

	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Chmod(dir, 0o755))
	_, err := Serve(dev, Auto)
	require.ErrorContains(t, err, "has mode 0755, others may enter it; run: chmod 700 "+dir)
	leave(t, filepath.Join(dir, "1-0.sock"))
	_, err = Discover(t.Context())
	require.ErrorContains(t, err, "others may enter it", "whoever made a socket there could tell us anything")

	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Symlink(shortDir(t), dir))
	_, err = Serve(dev, Auto)
	require.ErrorContains(t, err, "is not a directory")
}

// TestDiscoverStale removes what dead processes left, and only that.
func TestDiscoverStale(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", shortDir(t))
	serve(t, open(t, "live"), Auto)
	dir := runtimeDirs()[0]
	gone := exec.Command(os.Args[0], "-test.run=^$")
	require.NoError(t, gone.Run())

	dead := filepath.Join(dir, socketName(gone.Process.Pid, 0))
	opening := filepath.Join(dir, socketName(os.Getppid(), 0)) // bound and not listening yet
	foreign := filepath.Join(dir, "notes.sock")
	for _, path := range []string{dead, opening, foreign} {
		leave(t, path)
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

func TestProcessOf(t *testing.T) {
	for name, want := range map[string]int{
		socketName(4711, 0): 4711, socketName(1, 12): 1, "x-0.sock": 0, "4711-0": 0, "": 0, "-1-0.sock": 0, "notes.sock": 0,
	} {
		pid, ok := processOf(name)
		require.Equal(t, want != 0, ok, name)
		if ok {
			require.Equal(t, want, pid)
		}
	}
}
