package env

import (
	"bufio"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func kernelVersion() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}

// cpuModel returns the model in /proc/cpuinfo, or "" on architectures that report none.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		switch strings.TrimSpace(key) {
		case "model name", "Model", "cpu model":
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func netCoreSysctl(name string) string {
	b, err := os.ReadFile("/proc/sys/net/core/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b)) + " B"
}

// loadAverage returns the average number of runnable threads in the last minute: the load
// before the run. A busy machine distorts figures.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
