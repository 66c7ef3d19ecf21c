package sched

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// loadavg is a descriptor of /proc/loadavg, or -1.
var loadavg = sync.OnceValue(func() int {
	fd, err := unix.Open("/proc/loadavg", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
})

// onlineProcessors is the number of processors of the machine, of which this process may have only
// some.
var onlineProcessors = sync.OnceValue(func() int {
	list, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return 0
	}
	return countProcessors(strings.TrimSpace(string(list)))
})

// countProcessors counts the processors of a list such as 0-3,8, or returns 0 if it is malformed.
func countProcessors(list string) (n int) {
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || to < from {
			return 0
		}
		n += to - from + 1
	}
	return n
}

// runnablePerProcessor returns the number of threads that run or want to, of all processes, for
// each processor of the machine; 0 if it is unknown. It makes one system call.
func runnablePerProcessor() int {
	var buf [128]byte
	processors, fd := onlineProcessors(), loadavg()
	if processors == 0 || fd < 0 {
		return 0
	}
	n, err := unix.Pread(fd, buf[:], 0)
	if err != nil {
		return 0
	}
	return parseRunnable(buf[:n]) / processors
}

// parseRunnable returns the number of runnable threads in a line of /proc/loadavg, "0.20 0.18 0.12
// 1/80 11206", or 0 if it is malformed.
func parseRunnable(line []byte) int {
	fields := bytes.Fields(line)
	if len(fields) < 4 {
		return 0
	}
	running, _, _ := bytes.Cut(fields[3], []byte("/"))
	n, err := strconv.Atoi(string(running))
	if err != nil {
		return 0
	}
	return n
}
