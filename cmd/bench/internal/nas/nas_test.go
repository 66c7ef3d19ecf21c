package nas_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

func ExampleRandom() {
	x := nas.Random(314159265)
	for range 3 {
		x = x.Next()
		fmt.Printf("%d %.12f\n", uint64(x), x.Float64())
	}
	// Output:
	// 55909509111989 0.794521911189
	// 61155031930969 0.869065273875
	// 45573031421645 0.647631728464
}

// halves is NPB's generator in floating point: 46-bit numbers are products of 23-bit halves.
func halves(x, a float64) float64 {
	const r23, t23, r46, t46 = 1.0 / (1 << 23), 1 << 23, 1.0 / (1 << 46), 1 << 46
	a1 := math.Trunc(r23 * a)
	a2 := a - t23*a1
	x1 := math.Trunc(r23 * x)
	x2 := x - t23*x1
	t1 := a1*x2 + a2*x1
	z := t1 - t23*math.Trunc(r23*t1)
	t3 := t23*z + a2*x2
	return t3 - t46*math.Trunc(r46*t3)
}

func TestRandomIsNPBs(t *testing.T) {
	x, y := nas.Random(314159265), 314159265.0
	for range 100_000 {
		x, y = x.Next(), halves(y, 1220703125)
		require.Equal(t, y, float64(x))
	}
}

func TestSkip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := nas.Random(rapid.Uint64Range(1, 1<<46-1).Draw(t, "x"))
		a, b := rapid.Uint64Range(0, 1<<40).Draw(t, "a"), rapid.Uint64Range(0, 1000).Draw(t, "b")
		y := x.Skip(a)
		for range b {
			y = y.Next()
		}
		require.Equal(t, y, x.Skip(a+b))
	})
}

func TestParseClass(t *testing.T) {
	for _, c := range nas.Classes {
		for _, s := range []string{c.String(), strings.ToLower(c.String())} {
			got, err := nas.ParseClass(s)
			require.NoError(t, err)
			require.Equal(t, c, got)
		}
	}
	for _, s := range []string{"", "D", "SS", "ab", "\x00"} {
		_, err := nas.ParseClass(s)
		require.ErrorIs(t, err, nas.ErrClass)
	}
}

func TestChecks(t *testing.T) {
	for _, c := range []struct {
		check nas.Check
		ok    bool
	}{
		{nas.Check{Got: 50, Want: 50}, true},
		{nas.Check{Got: 49, Want: 50}, false},
		{nas.Check{Got: 1 + 1e-9, Want: 1, Tolerance: 1e-8}, true},
		{nas.Check{Got: 1 - 1e-7, Want: 1, Tolerance: 1e-8}, false},
		{nas.Check{Got: -1, Want: 1, Tolerance: 1e-8}, false},
		{nas.Check{Got: math.NaN(), Want: 1, Tolerance: 1e-8}, false},
		{nas.Check{Got: math.Inf(1), Want: 1, Tolerance: 1e-8}, false},
		{nas.Check{Got: 0, Want: 0}, true},
	} {
		require.Equal(t, c.ok, c.check.OK(), "%v", c.check)
		require.Equal(t, c.ok, nas.Report{Checks: []nas.Check{{}, c.check}}.Verified())
	}
	require.False(t, nas.Report{}.Verified(), "nothing was checked")
}

// TestReport checks the lines that scripts parse in NPB's output.
func TestReport(t *testing.T) {
	r := nas.Report{Benchmark: "EP", Class: nas.S, Size: 1 << 25, Time: 1500 * time.Millisecond, Processes: 4,
		Operations: 6e6, Operation: "Random numbers generated", Checks: []nas.Check{{Name: "sum", Got: 2, Want: 1}}}
	text := r.String()
	require.Contains(t, text, "\n EP Benchmark Completed.\n")
	require.Contains(t, text, " sum: 2, published 1, error 1.0e+00\n")
	got := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, " = "); ok {
			require.Len(t, line, 44)
			got[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	require.NotEmpty(t, got["Version"])
	require.NotEmpty(t, got["Compile date"])
	delete(got, "Version")
	delete(got, "Compile date")
	require.Equal(t, map[string]string{"Class": "S", "Size": "33554432", "Iterations": "0", "Time in seconds": "1.5000",
		"Total processes": "4", "Active procs": "4", "Mop/s total": "4.00", "Mop/s/process": "1.00",
		"Operation type": "Random numbers generated", "Verification": "UNSUCCESSFUL"}, got)
}

func TestSlowest(t *testing.T) {
	require.NoError(t, mpitest.Run(3, func(w mpi.World) error {
		d, err := nas.MaxTime(w.Comm, time.Duration(w.Rank())*time.Second)
		require.Equal(t, 2*time.Second, d)
		return err
	}))
}
