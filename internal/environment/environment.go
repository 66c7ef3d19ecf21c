// Package environment lists the environment variables of this project and warns of unknown
// ones, which are usually typing errors.
//
//	environment.WarnUnknown(func(text string) { log.Print(text) })
package environment

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/spelling"
)

// Prefix begins the names of all variables of this project.
const Prefix = "SOFTRNIC_"

// A Variable is an environment variable of this project.
type Variable struct {
	Name   string
	Values string // accepted values
	Doc    string // effect
}

// Variables lists the variables that programs of this project read, sorted by name.
// docs/environment.md has the same names. Variables of its tests contain the word TEST, LAB or
// LAUNCH.
var Variables = []Variable{
	{"SOFTRNIC_ACP_NET", "rc, ud", "transport of ACP"},
	{"SOFTRNIC_ADDR", "addresses, ranges of ports and prefixes", "addresses of a device"},
	{"SOFTRNIC_CAPTURE", "a file name", "capture of the devices of an unmodified program"},
	{"SOFTRNIC_CONGESTION", "off, auto, dcqcn, delay", "congestion control of connections"},
	{"SOFTRNIC_DEBUG", "auto, or an address", "debug endpoint of a device"},
	{"SOFTRNIC_DEVICES", "1 to 16", "number of devices of an unmodified program"},
	{"SOFTRNIC_DROPIN", "off", "off: an unmodified program uses the installed RDMA libraries"},
	{"SOFTRNIC_DROPIN_DIR", "a directory", "libraries for unmodified programs"},
	{"SOFTRNIC_ENGINE", "a file", "engine of the preloaded library"},
	{"SOFTRNIC_EXPLAIN", "1", "explain failed completions of an unmodified program on standard error"},
	{"SOFTRNIC_ICM", "off, or entries and a penalty, such as 32,1us", "cache of contexts of hardware adapters"},
	{"SOFTRNIC_IMPAIR", "faults, such as loss 1% delay 2ms", "fault injection"},
	{"SOFTRNIC_LINK", "nogso, nogro, nommsg, portable, noshm", "parts of the fast path that are off; noshm: no shared memory"},
	{"SOFTRNIC_LOG", "off, error, warn, info, debug", "log level on standard error"},
	{"SOFTRNIC_MPI_CHECK", "0, 1", "compare calls before they execute"},
	{"SOFTRNIC_MPI_COLL", "a list such as alltoall=bruck,bcast=chain", "algorithms of collectives"},
	{"SOFTRNIC_MPI_CONNECT", "demand, all", "time of connecting"},
	{"SOFTRNIC_MPI_EAGER", "64 to 1048576", "eager threshold in bytes"},
	{"SOFTRNIC_MPI_FAST", "on, off", "RDMA fast path of short messages"},
	{"SOFTRNIC_MPI_FLOW", "shared, credit, rdma, nic", "flow control of short messages"},
	{"SOFTRNIC_MPI_GIVE_UP", "a duration of at least 1s", "liveness timeout of a rank"},
	{"SOFTRNIC_MPI_NET", "rdma, ud, hybrid, tcp", "transport of MPI"},
	{"SOFTRNIC_MPI_ONESIDED", "direct, messages", "implementation of one-sided operations"},
	{"SOFTRNIC_MPI_RAILS", "1 to 8", "queue pairs between two ranks"},
	{"SOFTRNIC_MPI_RC_LIMIT", "a number of ranks", "connected peers of a rank with hybrid"},
	{"SOFTRNIC_MPI_RENDEZVOUS", "read, write, copy", "rendezvous protocol"},
	{"SOFTRNIC_MPI_REPORT_SIGNAL", "USR1, USR2", "signal that requests a report"},
	{"SOFTRNIC_MPI_SHARED", "on, off", "shared memory of collectives"},
	{"SOFTRNIC_MPI_WATCHDOG", "a duration, off", "time in one call before a report"},
	{"SOFTRNIC_NAS_ALL", "1", "all classes in the tests of the NAS benchmarks"},
	{"SOFTRNIC_PMI", "1, 2", "PMI version"},
	{"SOFTRNIC_PMI_SECRET", "text", "secret for a process manager at PMI_PORT, set by mpirun"},
	{"SOFTRNIC_SEED", "a number", "seed of a randomized test"},
	{"SOFTRNIC_SEEDS", "a number", "number of seeds of randomized tests"},
	{"SOFTRNIC_SHARE", "0, 1", "address shared with other processes"},
	{"SOFTRNIC_TRACE", "1", "print failed calls of an unmodified program on standard error"},
	{"SOFTRNIC_WIRE", "roce, iwarp", "protocol of a device"},
}

// isKnown reports whether Variables contains name.
func isKnown(name string) bool {
	return slices.ContainsFunc(Variables, func(v Variable) bool { return v.Name == name })
}

// Word returns the value of a variable in lower case. An error lists the words that are
// accepted; the empty value is accepted too.
func Word(name string, words ...string) (string, error) {
	v := os.Getenv(name)
	if w := strings.ToLower(v); w == "" || slices.Contains(words, w) {
		return w, nil
	}
	last := len(words) - 1
	return "", fmt.Errorf("%s=%s: want %s or %s%s", name, v, strings.Join(words[:last], ", "), words[last], spelling.Hint(v, words...))
}

// Int returns the value of a variable and whether it is set. An error names the unit and the
// range of accepted values.
func Int(name, unit string, low, high int) (n int, ok bool, err error) {
	v := os.Getenv(name)
	if v == "" {
		return 0, false, nil
	}
	if n, err = strconv.Atoi(v); err != nil || n < low || n > high {
		return 0, false, fmt.Errorf("%s=%s: want a number of %s from %d to %d", name, v, unit, low, high)
	}
	return n, true, nil
}

// Duration returns the value of a variable, 0 if it is unset. The error of a shorter time names
// least.
func Duration(name string, least time.Duration) (time.Duration, error) {
	v := os.Getenv(name)
	if v == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < least {
		return 0, fmt.Errorf("%s=%s: want a duration such as 30s, at least %v", name, v, least)
	}
	return d, nil
}

// Unknown returns the names in environ ("NAME=value") that begin with Prefix and are not known,
// sorted and without duplicates.
func Unknown(environ []string) []string {
	var list []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, Prefix) && !isKnown(name) && !isTestVariable(name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func isTestVariable(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "_"), func(word string) bool {
		return word == "TEST" || word == "LAB" || word == "LAUNCH"
	})
}

// hintFor returns a clause that names the variable that an unknown one stands for.
func hintFor(name string) string {
	names := make([]string, len(Variables))
	for i, v := range Variables {
		names[i] = v.Name
	}
	return spelling.Hint(name, names...)
}

var warned sync.Once

// WarnUnknown calls warn with a sentence for each unknown variable of the process. Only the
// first call in a process has an effect.
func WarnUnknown(warn func(text string)) {
	warned.Do(func() {
		for _, name := range Unknown(os.Environ()) {
			warn(fmt.Sprintf("environment variable %s is unknown and has no effect%s", name, hintFor(name)))
		}
	})
}
