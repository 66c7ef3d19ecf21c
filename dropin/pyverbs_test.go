package dropin_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// envPyverbs names the directory tests of rdma-core's sources. Debian's package python3-pyverbs has it as documentation,
// with compressed files.
const envPyverbs = "PYVERBS_TESTS"

// minPyverbs is the number of pyverbs' tests that must pass.
const minPyverbs = 110

// pyverbsSkips are the reasons of pyverbs' tests that do not apply. docs/pyverbs-tests.md explains them.
var pyverbsSkips = []string{
	"Can not run the test over non MLX5 device",
	"Could not open mlx5 context (This is not an MLX5 device)",
	"Can not run the test over non EFA device",
	"Allocating dmabuf is not supported by /dev/dri/renderD128",
	"Device /dev/dri/renderD128 is not present",
	"Create XRCD is not supported",
	"Create QP type 8 is not supported",
	"Extended CQ is not supported",
	"There are no huge pages of size 2M allocated",
	"cuda-python 12.0+ must be installed to run CUDA tests",
	"PCI device must be passed by the user",
	"Create Raw Packet QP without attrs is not supported",
	"Create Raw Packet QP with attrs is not supported",
	"Create Raw Packet QP without extended attrs is not supported",
	"Create Raw Packet QP with extended attrs is not supported",
	"Converting timestamp to nanoseconds is not supported",
	"All gid indices populated, cannot check bad flow",
}

// pyverbsForked is the error of the tests of librdmacm: their processes are children by fork of one that has used the
// device, which cannot use it themselves.
const pyverbsForked = "Errno: 19, No such device"

// findPyverbs returns the file run_tests.py, or skips the test.
func findPyverbs(t *testing.T) string {
	t.Helper()
	if err := exec.Command("/usr/bin/python3", "-c", "import pyverbs.device").Run(); err != nil {
		t.Skip("not installed: python3-pyverbs")
	}
	dir := cmp.Or(os.Getenv(envPyverbs), "/usr/share/doc/rdma-core/tests")
	files, _ := filepath.Glob(filepath.Join(dir, "*.py*"))
	if requireFiles(filepath.Join(dir, "run_tests.py")) != nil {
		t.Skip("not installed: pyverbs' tests; set " + envPyverbs + " to the directory tests of rdma-core's sources")
	}
	to := filepath.Join(t.TempDir(), "tests")
	require.NoError(t, os.Mkdir(to, 0o755))
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name, compressed := strings.CutSuffix(filepath.Base(file), ".gz")
		if compressed {
			r, err := gzip.NewReader(bytes.NewReader(text))
			require.NoError(t, err)
			text, err = io.ReadAll(r)
			require.NoError(t, err)
		}
		require.NoError(t, os.WriteFile(filepath.Join(to, name), text, 0o644))
	}
	return filepath.Join(to, "run_tests.py")
}

// TestPyverbs runs rdma-core's tests of adapters: none may fail, and each that is skipped has a reason that is known.
func TestPyverbs(t *testing.T) {
	file := findPyverbs(t)
	r := command{args: []string{"/usr/bin/python3", file, "-v", "--dev", "softrnic0", "--gid", "0"}, limit: 10 * time.Minute}.runProgram(t)
	forked := 0
	for _, m := range regexp.MustCompile(`(?m)^(?:ERROR|FAIL): (.*)$`).FindAllStringSubmatch(r.stderr, -1) {
		if strings.Contains(m[1], "tests.test_rdmacm.") && strings.Contains(r.stdout, pyverbsForked) {
			forked++
			continue
		}
		t.Errorf("%s\n%v", m[1], r)
	}
	count := func(pattern string) int {
		m := regexp.MustCompile(pattern).FindStringSubmatch(r.stderr)
		require.NotNil(t, m, "%s in\n%v", pattern, r)
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		return n
	}
	all, skipped := count(`(?m)^Ran (\d+) tests`), count(`(?m)^(?:OK|FAILED) \(.*skipped=(\d+)`)
	t.Logf("%d tests, %d skipped", all, skipped)
	require.GreaterOrEqual(t, all-skipped-forked, minPyverbs)

	reasons := regexp.MustCompile(`(?m)\.\.\. skipped '(.*)'$`).FindAllStringSubmatch(r.stderr, -1)
	require.Len(t, reasons, skipped)
	for _, m := range reasons {
		require.Contains(t, pyverbsSkips, m[1])
	}
}

// TestPyverbsDocs checks that the document has each reason.
func TestPyverbsDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/pyverbs-tests.md")
	require.NoError(t, err)
	for _, reason := range pyverbsSkips {
		require.Equal(t, 1, strings.Count(string(text), "| "+reason+" |"), reason)
	}
}
