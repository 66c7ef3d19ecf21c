package nas

import (
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// A Report is the result of a benchmark. It is the same at all ranks.
type Report struct {
	Benchmark  string // "IS", "CG", "EP"
	Class      Class
	Size       int64 // problem size: keys, rows, or random numbers
	Iterations int
	Time       time.Duration // time of the slowest rank, without setup
	Processes  int
	Operations float64 // number of operations as counted by NPB
	Operation  string  // kind of operation
	Checks     []Check
}

// A Check is a result and its published value.
type Check struct {
	Name      string
	Got, Want float64
	Tolerance float64 // relative
}

// OK reports whether the result is within the tolerance.
func (c Check) OK() bool { return c.RelativeError() <= c.Tolerance }

// RelativeError returns the deviation from the published value, relative to it.
func (c Check) RelativeError() float64 {
	if c.Got == c.Want {
		return 0
	}
	if e := math.Abs((c.Got - c.Want) / c.Want); !math.IsNaN(e) {
		return e
	}
	return math.Inf(1)
}

// Verified reports whether there are checks and all of them are OK.
func (r Report) Verified() bool {
	for _, c := range r.Checks {
		if !c.OK() {
			return false
		}
	}
	return len(r.Checks) > 0
}

// Mops returns millions of operations per second.
func (r Report) Mops() float64 { return r.Operations / r.Time.Seconds() / 1e6 }

// String returns the checks and NPB's block of results.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n\n NAS Parallel Benchmarks -- %s Benchmark\n\n", r.Benchmark)
	for _, c := range r.Checks {
		fmt.Fprintf(&b, " %s: %.14g, published %.14g, error %.1e\n", c.Name, c.Got, c.Want, c.RelativeError())
	}
	verdict := "UNSUCCESSFUL"
	if r.Verified() {
		verdict = "SUCCESSFUL"
	}
	version, date := buildInfo()
	fmt.Fprintf(&b, "\n\n %s Benchmark Completed.\n", r.Benchmark)
	for _, line := range []struct {
		key   string
		value any
	}{
		{"Class", r.Class},
		{"Size", r.Size},
		{"Iterations", r.Iterations},
		{"Time in seconds", fmt.Sprintf("%.4f", r.Time.Seconds())},
		{"Total processes", r.Processes},
		{"Active procs", r.Processes},
		{"Mop/s total", fmt.Sprintf("%.2f", r.Mops())},
		{"Mop/s/process", fmt.Sprintf("%.2f", r.Mops()/float64(r.Processes))},
		{"Operation type", r.Operation},
		{"Verification", verdict},
		{"Version", version},
		{"Compile date", date},
	} {
		fmt.Fprintf(&b, " %-15s = %24v\n", line.key, line.value)
	}
	return b.String()
}

// buildInfo returns version and date of this program, as far as the build recorded them.
func buildInfo() (version, date string) {
	version, date = "softrnic", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				version += " " + s.Value[:min(len(s.Value), 12)]
			case "vcs.time":
				date, _, _ = strings.Cut(s.Value, "T")
			}
		}
	}
	return version, date
}

// MaxTime returns the maximum of d over all ranks. It is collective.
func MaxTime(c *mpi.Comm, d time.Duration) (time.Duration, error) {
	slowest := d
	err := c.Allreduce(mpi.Value(&d), mpi.Value(&slowest), mpi.Max)
	return slowest, err
}
