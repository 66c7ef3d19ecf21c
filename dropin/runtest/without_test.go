package runtest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// copyFile copies a file to the same path below root, or to another name there.
func copyFile(t *testing.T, from, root, name string) {
	t.Helper()
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	to := filepath.Join(root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// needed matches the path of a library in the output of ldd(1).
var needed = regexp.MustCompile(`(/\S+/(?:ld-linux\S*|lib(?:c|m|dl|pthread|resolv|gcc_s)\.so\S*)) \(`)

// TestWithoutRDMACore runs a program in a root directory that has the C library and no rdma-core.
func TestWithoutRDMACore(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root changes its root directory")
	}
	b := needBuild(t)
	root := t.TempDir()
	program := filepath.Join(t.TempDir(), "pair")
	out, err := exec.Command("gcc", "-o", program, "../example/pair.c", "-libverbs").CombinedOutput()
	require.NoError(t, err, string(out))

	manager := filepath.Join(t.TempDir(), "manager")
	out, err = exec.Command("gcc", "-o", manager, "-Wl,--no-as-needed", "../example/pair.c", "-libverbs", "-lrdmacm").CombinedOutput()
	require.NoError(t, err, string(out))
	for file, name := range map[string]string{
		program: "bin/pair", manager: "bin/manager", b.softrnic: "bin/softrnic", filepath.Join(b.libraries, "libsoftrnic-preload.so"): "lib/softrnic/libsoftrnic-preload.so",
		filepath.Join(b.libraries, "libsoftrnic-engine.so"):                     "lib/softrnic/libsoftrnic-engine.so",
		filepath.Join(b.libraries, "standin/libibverbs.so.1.d/libibverbs.so.1"): "lib/softrnic/standin/libibverbs.so.1.d/libibverbs.so.1",
	} {
		copyFile(t, file, root, name)
	}
	for _, file := range []string{program, filepath.Join(b.libraries, "libsoftrnic-engine.so")} {
		out, err := exec.Command("ldd", file).Output()
		require.NoError(t, err)
		for _, m := range needed.FindAllStringSubmatch(string(out), -1) {
			copyFile(t, m[1], root, m[1])
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "tmp"), 0o1777))

	run := func(program string, environ ...string) (string, error) {
		c := exec.CommandContext(t.Context(), "/bin/softrnic", "run", "--libraries", "/lib/softrnic", "--", program, "3")
		c.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		c.Dir, c.Env = "/", environ
		out, err := c.CombinedOutput()
		return string(out), err
	}
	text, err := run("/bin/pair")
	require.NoError(t, err, text)
	require.Contains(t, text, "3 blocks of 65536 bytes")

	text, err = run("/bin/manager")
	require.ErrorContains(t, err, "exit status 126")
	require.Equal(t, "softrnic: run: /bin/manager: softrnic cannot reach this program: "+
		"it needs librdmacm.so.1, which is not installed; Debian: apt-get install librdmacm1\n", text)

	text, err = run("/bin/pair", "SOFTRNIC_DROPIN=off")
	require.Error(t, err)
	require.Contains(t, text, "ibv_get_device_list: neither the engine nor an installed library has this function")
}
