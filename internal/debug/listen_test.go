//go:build unix

package debug

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shortDir returns a temporary directory whose name is short enough for a socket in it, which that
// of t.TempDir is not on macOS.
func shortDir(t *testing.T) string {
	t.Helper()
	base := ""
	if runtime.GOOS == "darwin" {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, "s")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// leaveSocket leaves a socket without a listener, as a killed process does.
func leaveSocket(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.FileExists(t, path)
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	leaveSocket(t, path)
	s, err := Serve(nobody{}, "unix:"+path)
	require.NoError(t, err, "what a dead process left is replaced")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	_, err = Serve(nobody{}, "unix:"+path)
	require.ErrorIs(t, err, errInUse)
	require.NoError(t, s.Close())
	require.NoFileExists(t, path)

	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err = Serve(nobody{}, "unix:"+path)
	require.ErrorContains(t, err, "exists and is not a socket")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "precious", string(text))

	_, err = Serve(nobody{}, "unix:"+filepath.Join(shortDir(t), "no", "s"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestPrivateDirectory(t *testing.T) {
	tmp := shortDir(t)
	t.Setenv("TMPDIR", tmp)
	t.Setenv("XDG_RUNTIME_DIR", "")
	dir := Directories()[0]

	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Chmod(dir, 0o755))
	_, err := Serve(nobody{}, Auto)
	require.ErrorContains(t, err, "has mode 0755, others may enter it; run: chmod 700 "+dir)
	leaveSocket(t, filepath.Join(dir, "1-0.sock"))
	_, err = Sockets(dir)
	require.ErrorContains(t, err, "others may enter it", "another user could create a socket there")

	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Symlink(shortDir(t), dir))
	_, err = Serve(nobody{}, Auto)
	require.ErrorContains(t, err, "is not a directory")
}

func TestProcessOf(t *testing.T) {
	for name, want := range map[string]int{
		socketName(4711, 0): 4711, socketName(1, 12): 1, "x-0.sock": 0, "4711-0": 0, "": 0, "-1-0.sock": 0, "notes.sock": 0,
	} {
		pid, ok := socketPID(name)
		require.Equal(t, want != 0, ok, name)
		if ok {
			require.Equal(t, want, pid)
		}
	}
}

// TestEndedProcesses checks that a process removes the sockets of killed ones, and no others.
func TestEndedProcesses(t *testing.T) {
	dir := shortDir(t)
	ended := exec.Command(os.Args[0], "-test.run=^$")
	require.NoError(t, ended.Run())
	gone := filepath.Join(dir, socketName(ended.Process.Pid, 0))
	leaveSocket(t, gone)
	bound := filepath.Join(dir, socketName(os.Getppid(), 0)) // of a process that runs and does not listen yet
	leaveSocket(t, bound)
	other := filepath.Join(dir, "other.sock")
	leaveSocket(t, other)
	removeEnded(dir)
	require.NoFileExists(t, gone)
	require.FileExists(t, bound)
	require.FileExists(t, other)
}
