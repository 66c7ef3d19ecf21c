package perftest

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
)

// A usage has figures of the machine and the device at one time.
type usage struct {
	cpuTicks cpuTicks
	values   []uint64 // of Counters
}

// readUsage reads the figures that the options request.
func (r *runner) readUsage() (m usage, err error) {
	if r.CPUUtil {
		if m.cpuTicks, err = readCPUTicks(); err != nil {
			return m, err
		}
	}
	for _, name := range r.Counters {
		value, ok := r.Counter(r.endpoint.dev, name[strings.LastIndexByte(name, '/')+1:])
		if !ok {
			return m, option.Errorf("-W", "the device has no counter %q; `softrnic stat` lists its counters", name)
		}
		m.values = append(m.values, value)
	}
	return m, nil
}

// printCounters writes the increase of the counters since before.
func (r *runner) printCounters(before usage) error {
	if len(r.Counters) == 0 {
		return nil
	}
	now, err := r.readUsage()
	if err != nil {
		return err
	}
	for i, name := range r.Counters {
		fmt.Fprintf(r.Out, "\t%s=%d\n", name, now.values[i]-before.values[i])
	}
	fmt.Fprintln(r.Out)
	return nil
}

// A cpuTicks has the times of all processors together since boot.
type cpuTicks struct{ user, idle float64 }

// readCPUTicks reads the times from Linux's /proc/stat.
func readCPUTicks() (t cpuTicks, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t, fmt.Errorf("--cpu_util needs Linux: %w", err)
	}
	_, err = fmt.Sscanf(string(text), "cpu %f", &t.user)
	fields := strings.Fields(strings.SplitN(string(text), "\n", 2)[0])
	if err == nil && len(fields) > 4 {
		t.idle, err = strconv.ParseFloat(fields[4], 64)
	}
	return t, err
}

// cpuUtilization returns the share of user time since m in percent, or nil without --cpu_util.
func (m usage) cpuUtilization(p *plan) (*float64, error) {
	if !p.CPUUtil {
		return nil, nil
	}
	now, err := readCPUTicks()
	if err != nil {
		return nil, err
	}
	user, idle := now.user-m.cpuTicks.user, now.idle-m.cpuTicks.idle
	percent := 0.0
	if user+idle > 0 {
		percent = 100 * user / (user + idle)
	}
	return &percent, nil
}

// nanosPerUnit returns the length of a unit of a latency report in nanoseconds: 1000, or with
// Cycles that of a cycle.
func (p *plan) nanosPerUnit() (float64, error) {
	if !p.Cycles {
		return 1e3, nil
	}
	mhz, err := readMHz("/proc/cpuinfo")
	if err != nil {
		return 0, option.Errorf("-C", "%s", err.Error())
	}
	return 1e3 / mhz, nil
}

// readMHz reads the processor's frequency from Linux's /proc/cpuinfo.
func readMHz(file string) (float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("processor frequency: only known on Linux: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "cpu MHz" {
			mhz, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err == nil && mhz > 0 {
				return mhz, nil
			}
		}
	}
	return 0, fmt.Errorf("%s: no frequency of the processor", file)
}
