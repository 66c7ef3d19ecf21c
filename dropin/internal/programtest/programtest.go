// Package programtest has functions for tests that run installed programs with the drop-in libraries.
package programtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// envLibraries names a directory with built libraries, which the tests use instead of building them.
const envLibraries = "DROPIN_TEST_LIBRARIES"

var workDir string

// RunTests runs the tests of a package with a work directory, which it removes, and returns the exit status.
func RunTests(m *testing.M) int {
	var err error
	if workDir, err = os.MkdirTemp("", "dropin-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(workDir)
	return m.Run()
}

// WorkDir returns the work directory of RunTests.
func WorkDir() string { return workDir }

// moduleDir returns the directory of the module dropin.
func moduleDir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

var buildLibraries = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(envLibraries); dir != "" {
		return dir, nil
	}
	out, err := exec.Command(filepath.Join(moduleDir(), "build.sh"), workDir).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build.sh: %w\n%s", err, out)
	}
	return workDir, err
})

// LibraryDir returns the directory of the libraries: that of DROPIN_TEST_LIBRARIES, or the work directory, in which
// the first call builds them. It skips the test where that is not possible.
func LibraryDir(t testing.TB) string {
	t.Helper()
	NeedPrograms(t, "gcc")
	for _, header := range []string{"/usr/include/infiniband/verbs.h", "/usr/include/rdma/rdma_cma.h"} {
		if _, err := os.Stat(header); err != nil {
			t.Skip("apt-get install libibverbs-dev librdmacm-dev: ", err)
		}
	}
	dir, err := buildLibraries()
	require.NoError(t, err)
	return dir
}

// NeedPrograms skips a test unless all programs are installed.
func NeedPrograms(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("not installed: " + name)
		}
	}
}

// FreePort returns a TCP port that no program listens on.
func FreePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// WaitListening waits until a program listens on a TCP port of this network namespace, by the tables of the kernel: the
// programs take a connection for their client.
func WaitListening(t testing.TB, port string) {
	t.Helper()
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	listening := regexp.MustCompile(fmt.Sprintf(`(?m):%04X [0-9A-F]+:0000 0A `, number))
	require.Eventually(t, func() bool {
		v4, _ := os.ReadFile("/proc/net/tcp")
		v6, _ := os.ReadFile("/proc/net/tcp6")
		return listening.Match(v4) || listening.Match(v6)
	}, 30*time.Second, 10*time.Millisecond, "no program listens on port %s", port)
}
