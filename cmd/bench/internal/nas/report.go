package nas

import (
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// Report is what comes of a benchmark. Ranks other than 0 have the same.
type Report struct {
	Benchmark  string // "IS", "CG", "EP"
	Class      Class
	Size       int64 // of the problem: keys, rows, random numbers
	Iterations int
	Time       time.Duration // of the slowest rank, without setting up
	Processes  int
	Operations float64 // in the way that NPB counts them
	Operation  string  // what is counted
	Checks     []Check
}

// Check is a result beside the value that is published for it.
type Check struct {
	Name      string
	Got, Want float64
	Tolerance float64 // relative
}

// OK reports whether the result is right.
func (c Check) OK() bool { return c.RelativeError() <= c.Tolerance }

// RelativeError is how far the result is from what it should be, relative to that.
func (c Check) RelativeError() float64 {
	if c.Got == c.Want {
		return 0
	}
	if e := math.Abs((c.Got - c.Want) / c.Want); !math.IsNaN(e) {
		return e
	}
	return math.Inf(1)
}

// Verified reports whether there were checks and all of them are right.
func (r Report) Verified() bool {
	for _, c := range r.Checks {
		if !c.OK() {
			return false
		}
	}
	return len(r.Checks) > 0
}

// Mops is millions of operations a second.
func (r Report) Mops() float64 { return r.Operations / r.Time.Seconds() / 1e6 }

// String is the results and NPB's block of lines.
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

// buildInfo is version and date of this program, as far as the compiler knows them.
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

// MaxTime is the longest of the times that all ranks bring.
func MaxTime(c *mpi.Comm, d time.Duration) (time.Duration, error) {
	slowest := d
	err := c.Allreduce(mpi.Value(&d), mpi.Value(&slowest), mpi.Max)
	return slowest, err
}
