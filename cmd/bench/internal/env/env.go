// Package env describes the machine on which figures were measured, for reports:
//
//	fmt.Fprintln(os.Stderr, env.Read())
//
// A figure without its machine means little. The description goes into every
// report, and to stderr before every run.
package env

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
)

// A Fact is one property of the machine or of the program.
type Fact struct{ Name, Value string }

// A Fingerprint is a list of facts in the order to print.
type Fingerprint []Fact

// Read returns the facts of the current machine. Facts that the system does not report are left
// out.
func Read() Fingerprint {
	f := Fingerprint{
		{"go", runtime.Version()},
		{"system", runtime.GOOS + "/" + runtime.GOARCH},
		{"kernel", kernelVersion()},
		{"cpu", cpuModel()},
		{"cores", coreCount()},
		{"load", loadAverage()},
		{"rmem_max", netCoreSysctl("rmem_max")},
		{"rmem_default", netCoreSysctl("rmem_default")},
		{"GSO/GRO", describeOffload()},
		{"revision", buildRevision()},
		{"date", time.Now().Format("2006-01-02 15:04 MST")},
	}
	known := f[:0]
	for _, fact := range f {
		if fact.Value != "" {
			known = append(known, fact)
		}
	}
	return known
}

// String returns the facts on one line.
func (f Fingerprint) String() string {
	parts := make([]string, len(f))
	for i, fact := range f {
		parts[i] = fact.Name + " " + fact.Value
	}
	return strings.Join(parts, ", ")
}

// Get returns the value of the named fact, or "" if f does not have it.
func (f Fingerprint) Get(name string) string {
	for _, fact := range f {
		if fact.Name == name {
			return fact.Value
		}
	}
	return ""
}

func coreCount() string {
	n, p := runtime.NumCPU(), runtime.GOMAXPROCS(0)
	if n == p {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d, of which Go uses %d", n, p)
}

func describeOffload() string {
	if !udpraw.HasOffload() {
		return "no"
	}
	return fmt.Sprintf("yes, %d packets a buffer", udpraw.MaxSegments())
}

// buildRevision returns the commit from which the program was built. If the build did not record
// it, as `go run` does not, it returns the commit that is checked out in the current directory if
// that has the source of the program, or "".
func buildRevision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var rev, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = " with changes"
		}
	}
	if rev == "" {
		return checkedOutRevision()
	}
	return rev + dirty
}

func checkedOutRevision() string {
	if _, err := os.Stat("cmd/bench/main.go"); err != nil {
		return ""
	}
	out, _ := exec.Command("git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty= with changes").Output() // without git: ""
	return strings.TrimSpace(string(out))
}

// AvailableMemory returns the bytes that programs can allocate without swapping, or 0 if the system
// does not report them.
func AvailableMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if kib, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kib), "kB")), 10, 64)
			return n << 10
		}
	}
	return 0
}
