package runtest

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

// TestStatus checks that the exit status and the signal are the program's.
func TestStatus(t *testing.T) {
	for line, want := range map[string]int{"exit 7": 7, "kill -TERM $$": 128 + 15, "kill -KILL $$": 128 + 9, ":": 0} {
		out, status := start(t, nil, nil, "sh", "-c", line).wait(t)
		require.Equal(t, want, status, "%s: %s", line, out)
		require.Empty(t, out)
	}
}

// TestRefused checks the text and the status for programs that the preloaded library cannot reach.
func TestRefused(t *testing.T) {
	b := needBuild(t)
	dir := t.TempDir()
	program := func(name string, args ...string) string {
		source := filepath.Join(dir, name+".c")
		require.NoError(t, os.WriteFile(source, []byte("int ibv_of_tomorrow(void);\nint main(void)\n{\n\treturn ibv_of_tomorrow();\n}\n"), 0o644))
		out, err := exec.Command("gcc", append([]string{"-o", filepath.Join(dir, name), source}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		return filepath.Join(dir, name)
	}
	// A library of a later rdma-core.
	for name, text := range map[string]string{"new.c": "int ibv_of_tomorrow(void) { return 0; }\n", "versions": "IBVERBS_1.99 { global: ibv_of_tomorrow; local: *; };\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, soname := range []string{"libibverbs.so.1", "libibverbs.so.2"} {
		out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", filepath.Join(dir, soname), "-Wl,-soname,"+soname,
			"-Wl,--version-script="+filepath.Join(dir, "versions"), filepath.Join(dir, "new.c")).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	for path, want := range map[string]string{
		b.softrnic: "it is statically linked and has no dynamic linker",
		program("tomorrow", "-L", dir, "-l:libibverbs.so.1"):  "it needs ibv_of_tomorrow of libibverbs.so.1, version IBVERBS_1.99, which softrnic does not have",
		program("successor", "-L", dir, "-l:libibverbs.so.2"): "it is linked with libibverbs.so.2, an ABI that softrnic does not know",
	} {
		out, status := start(t, nil, nil, path).wait(t)
		require.Equal(t, 126, status, out)
		require.Equal(t, 1, strings.Count(out, "\n"), out)
		require.Contains(t, out, "softrnic: run: "+path+": softrnic cannot reach this program: "+want)
	}
	out, status := start(t, nil, []string{"--no-check"}, b.softrnic, "version").wait(t)
	require.Zero(t, status, out)
	none := filepath.Join(dir, "none")
	out, status = start(t, nil, nil, none).wait(t)
	require.Equal(t, 127, status)
	require.Equal(t, "softrnic: run: "+none+": no such file or directory\n", out)
	out, status = start(t, nil, []string{"--addr", "192.0.2.1"}, "ibv_devices").wait(t)
	require.Equal(t, 2, status, out)
}

// TestSetuid checks a program that would run as another user.
func TestSetuid(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes a program of another user")
	}
	path := filepath.Join(t.TempDir(), "true")
	text, err := os.ReadFile("/bin/true")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o755))
	require.NoError(t, os.Chown(path, 65534, 65534))
	require.NoError(t, os.Chmod(path, 0o755|os.ModeSetuid))
	out, status := start(t, nil, nil, path).wait(t)
	require.Equal(t, 126, status)
	require.Contains(t, out, "it has setuid, so the dynamic linker ignores LD_PRELOAD")
}

// TestEnv checks that a shell that evaluates the output of softrnic env has devices, and keeps what it preloads.
func TestEnv(t *testing.T) {
	programtest.NeedPrograms(t, "ibv_devices")
	b := needBuild(t)
	c := exec.Command("sh", "-c", `eval "$("$0" env --devices 2)"; echo "$LD_PRELOAD"; ibv_devices`, b.softrnic)
	c.Env = append(os.Environ(), "SOFTRNIC_DROPIN_DIR="+b.libraries, "LD_PRELOAD=/nonexistent/libother.so")
	out, err := c.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), filepath.Join(b.libraries, "libsoftrnic-preload.so")+":/nonexistent/libother.so\n")
	require.Contains(t, string(out), "softrnic0")
	require.Contains(t, string(out), "softrnic1")
	require.NotContains(t, string(out), "softrnic2")
}

// TestDevices checks the number of devices, and that a child of the program has them.
func TestDevices(t *testing.T) {
	programtest.NeedPrograms(t, "ibv_devinfo")
	out := runProgram(t, nil, []string{"--devices", "3"}, "sh", "-c", "ibv_devinfo -l; ls /sys/class/infiniband /dev/infiniband")
	for _, want := range []string{"3 HCAs found", "softrnic2\n", "uverbs2\n"} {
		require.Contains(t, out, want)
	}
	out = runProgram(t, nil, []string{"--devices", "3", "--addr", "127.0.113.21,127.0.113.22"}, "ibv_devinfo", "-v")
	require.Regexp(t, `(?s)127\.0\.113\.21, .*127\.0\.113\.22, .*127\.0\.113\.21, `, out, "in turn, and shared")
}

// TestSanitizer checks that a program with gcc's AddressSanitizer, which wants to be the first library, and one with
// ThreadSanitizer run.
func TestSanitizer(t *testing.T) {
	needBuild(t)
	for _, name := range []string{"address", "thread"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pair")
			if out, err := exec.Command("gcc", "-fsanitize="+name, "-o", path, "../example/pair.c", "-libverbs").CombinedOutput(); err != nil {
				t.Skipf("not installed: %s", out)
			}
			require.Contains(t, runProgram(t, nil, nil, path, "3"), "3 blocks")
		})
	}
}

// TestStandIn checks that a program runs with the stand-in library in the place of libibverbs, as on a machine without
// rdma-core.
func TestStandIn(t *testing.T) {
	b := needBuild(t)
	path := filepath.Join(t.TempDir(), "pair")
	out, err := exec.Command("gcc", "-o", path, "../example/pair.c", "-libverbs").CombinedOutput()
	require.NoError(t, err, string(out))
	environ := []string{"LD_LIBRARY_PATH=" + filepath.Join(b.libraries, "standin", "libibverbs.so.1.d")}
	maps := runProgram(t, environ, nil, "sh", "-c", `LD_DEBUG=libs LD_DEBUG_OUTPUT="$0.debug" "$0" 3; cat "$0".debug*`, path)
	require.Contains(t, maps, "3 blocks")
	require.Contains(t, maps, "calling init: "+filepath.Join(b.libraries, "standin", "libibverbs.so.1.d", "libibverbs.so.1"))
	require.NotContains(t, maps, "calling init: /lib/x86_64-linux-gnu/libibverbs.so.1")
}

// TestExample runs the example for continuous integration: a program under four fault models.
func TestExample(t *testing.T) {
	programtest.NeedPrograms(t, "cc")
	b := needBuild(t)
	c := exec.CommandContext(t.Context(), "../example/test.sh")
	c.Env = append(os.Environ(), "SOFTRNIC="+b.softrnic, "SOFTRNIC_DROPIN_DIR="+b.libraries)
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, 4, strings.Count(string(out), "200 blocks of 65536 bytes\n"))
	require.Contains(t, string(out), "passed\n")
}

// TestEngineFunctions checks that the engine has every function of libibverbs that the preloaded library hands to it: one
// that is missing would reach rdma-core with an object of ours.
func TestEngineFunctions(t *testing.T) {
	f, err := elf.Open(filepath.Join(needBuild(t).libraries, "libsoftrnic-engine.so"))
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	has := map[string]bool{}
	for _, s := range symbols {
		has[s.Name] = s.Section != elf.SHN_UNDEF
	}
	text, err := os.ReadFile("../preload/symbols.txt")
	require.NoError(t, err)
	checked := 0
	for line := range strings.Lines(string(text)) {
		if row := strings.Fields(line); len(row) == 3 && row[2] == "engine" {
			require.True(t, has["softrnic_"+row[1]], row[1])
			checked++
		}
	}
	require.Greater(t, checked, 50)
}
