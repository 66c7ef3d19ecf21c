//go:build interop && linux

package interop

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
)

// TestBenchPeers runs the experiment "peers" in the guest and checks that its rows show perftest on
// rxe and on softrnic.
func TestBenchPeers(t *testing.T) {
	g := lab.Need(t)
	if !isFull() {
		t.Skip("takes minutes of emulation: run with -matrix full")
	}
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	program, err := os.ReadFile(lab.Binary(t, "bench"))
	require.NoError(t, err)
	require.NoError(t, g.WriteFile(ctx, "/lab/bench", program))
	out, err := g.Output(ctx, "/lab/bench", "run", "peers", "--quick", "--json", "--set", "beside=rdma", "--set", "rounds=1", "--set", "iters=20", "--set", "time=10ms")
	require.NoError(t, err)
	sizes := make(map[string][]float64) // by series
	for line := range strings.Lines(out) {
		var row struct {
			Series string  `json:"series"`
			X, Y   float64 // size, and time or bandwidth
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row), line)
		if row.Series != "" {
			require.Positive(t, row.Y, line)
			sizes[row.Series] = append(sizes[row.Series], row.X)
		}
	}
	for _, series := range []string{"rc-write", "rc-send", lab.Device + "-rc-write", lab.Device + "-rc-send"} {
		require.Equal(t, []float64{8, 64 << 10}, sizes[series], "%s\n%s", series, out)
	}
}

// TestBenchBesideRxe runs the experiment "beside-rxe" in the guest: the same binary on softrnic and on
// rxe through package uverbs.
func TestBenchBesideRxe(t *testing.T) {
	g := lab.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	program, err := os.ReadFile(lab.Binary(t, "bench"))
	require.NoError(t, err)
	require.NoError(t, g.WriteFile(ctx, "/lab/bench", program))
	args := []string{"/lab/bench", "run", "beside-rxe", "--json", "--set", "qps=1,64", "--set", "rounds=3", "--set", "iters=50"}
	if !isFull() {
		args = append(args, "--quick", "--set", "rounds=1", "--set", "iters=20")
	}
	out, err := g.Output(ctx, args...)
	require.NoError(t, err)
	t.Log(out)
	seen := map[string]bool{}
	for line := range strings.Lines(out) {
		var row struct {
			Series string
			Y      float64
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row), line)
		if row.Series != "" {
			require.Positive(t, row.Y, line)
			seen[row.Series] = true
		}
	}
	for _, series := range []string{"rc-write", "rc-send", "kernel-rc-write", "kernel-rc-send"} {
		require.True(t, seen[series], "%s\n%s", series, out)
	}
}
