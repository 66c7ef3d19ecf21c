package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

// The estimate starts with assumed times and is scaled by actual ones.
func TestEstimate(t *testing.T) {
	all := four()[:3]
	e := newEstimate(all, bench.Options{Quick: true}, "")
	require.Equal(t, "about 24 s left", e.String())
	e.addElapsed(16 * time.Second)
	require.Equal(t, "about 32 s left", e.String())
	e.addElapsed(8 * time.Second)
	require.Equal(t, "about 12 s left", e.String())
	e.addElapsed(time.Second)
	require.Zero(t, e.remainingTime())

	require.Equal(t, "about 3 min left", newEstimate(all, bench.Options{}, "").String())
	e.left = []time.Duration{70 * time.Minute}
	e.expected = 0
	require.Equal(t, "about 1 h 10 min left", e.String())

	// A saved earlier run replaces the assumed time.
	dir := t.TempDir()
	res := &bench.Result{Experiment: all[0], Quick: true, Elapsed: 50 * time.Second, Verdict: bench.Verdict{Reason: "so"}}
	require.NoError(t, report.Save(dir, nil, res))
	require.Equal(t, "about 66 s left", newEstimate(all, bench.Options{Quick: true}, dir).String())
	require.Equal(t, "about 24 s left", newEstimate(all, bench.Options{Quick: true, Set: bench.Settings{"size": "8"}}, dir).String())
	require.Equal(t, "about 3 min left", newEstimate(all, bench.Options{}, dir).String())
}
