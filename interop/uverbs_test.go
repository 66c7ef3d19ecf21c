//go:build interop && linux

package interop

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
)

// runGuestTests runs the tests of a package in the guest, beside its rxe device, and logs their
// output.
func runGuestTests(t *testing.T, path string, args ...string) {
	t.Helper()
	g := lab.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	program, err := os.ReadFile(lab.TestBinary(t, path))
	require.NoError(t, err)
	require.NoError(t, g.WriteFile(ctx, "/lab/tests", program))
	var out bytes.Buffer
	p, err := g.Start(ctx, &out, &out, append([]string{"/lab/tests", "-test.v", "-test.timeout=4m"}, args...)...)
	require.NoError(t, err)
	err = p.Wait()
	t.Log(out.String())
	require.NoError(t, err)
}

// TestUverbs runs the tests of package uverbs on the guest's kernel.
func TestUverbs(t *testing.T) {
	runGuestTests(t, "verbs/uverbs", "-test.skip=^TestContract$")
}

// TestContract runs the tests of the contract of package verbs on the guest's kernel.
func TestContract(t *testing.T) { runGuestTests(t, "verbs/uverbs", "-test.run=^TestContract$") }

// TestStreams runs the streams of the benchmarks on the guest's kernel.
func TestStreams(t *testing.T) {
	runGuestTests(t, "cmd/bench/internal/verbsbench", "-test.run=^TestStreamOnKernelDevice$")
}
