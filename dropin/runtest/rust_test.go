package runtest

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

// TestRust runs a Rust program that declares libibverbs itself: one process writes into the memory of another, and both exchange
// messages over reliable queue pairs.
func TestRust(t *testing.T) {
	programtest.NeedPrograms(t, "rustc")
	needBuild(t)
	program := filepath.Join(t.TempDir(), "pair")
	out, err := exec.Command("rustc", "--edition", "2021", "-O", "-D", "warnings", "-o", program, "testdata/pair.rs").CombinedOutput()
	require.NoError(t, err, string(out))
	for _, flags := range [][]string{nil, {"--impair", "loss 1% seed 7"}} {
		require.Equal(t, "1044480 bytes written, 200 messages each way\n", runProgram(t, nil, flags, program, "200"))
	}
}
