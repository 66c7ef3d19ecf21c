package env

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
)

// A Fact is one property of the machine or of the program.
type Fact struct{ Name, Value string }

// A Fingerprint is the list of them, in the order to print.
type Fingerprint []Fact

// Read looks at the machine that it runs on. What a system does not tell is
// left out.
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

// String is the fingerprint on one line.
func (f Fingerprint) String() string {
	parts := make([]string, len(f))
	for i, fact := range f {
		parts[i] = fact.Name + " " + fact.Value
	}
	return strings.Join(parts, ", ")
}

// Get returns the value of the fact of that name, "" if it is not known.
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

// buildRevision is the commit that the program was built from, if the build
// recorded it.
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
	return rev + dirty
}
