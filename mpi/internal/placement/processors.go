package placement

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// machineProcessors returns the number of processors of the machine or the container.
// runtime.NumCPU is not enough: it counts the processors that this rank is bound to.
func machineProcessors() int {
	n := runtime.NumCPU()
	for _, file := range []string{"/sys/fs/cgroup/cpuset.cpus.effective", "/sys/devices/system/cpu/online"} { // cgroups(7), sysfs
		if list, err := os.ReadFile(file); err == nil {
			if listed := countList(string(list)); listed > 0 {
				n = max(n, listed)
				break
			}
		}
	}
	if limit, err := os.ReadFile("/sys/fs/cgroup/cpu.max"); err == nil { // cgroup v2
		if most := countQuota(string(limit)); most > 0 {
			n = min(n, most)
		}
	}
	return n
}

// countQuota returns the number of processors that a quota such as "200000 100000" allows
// (microseconds of CPU time in each period of microseconds), 0 if there is no limit.
func countQuota(limit string) int {
	quota, period, _ := strings.Cut(strings.TrimSpace(limit), " ")
	q, err := strconv.Atoi(quota)
	p, err2 := strconv.Atoi(period)
	if err != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0
	}
	return (q-1)/p + 1
}

// countList returns the number of elements of a list such as "0-3,8" (cpuset(7)), 0 if the list
// is malformed.
func countList(list string) (n int) {
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || a < 0 || b < a {
			return 0
		}
		n += b - a + 1
	}
	return n
}
