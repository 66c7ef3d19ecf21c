package proc

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// pinOrder lists the CPUs that this process may use, one of each core first, so
// that the first workers do not share one.
func pinOrder() []int {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return nil
	}
	var first, siblings []int
	seen := map[string]bool{}
	for cpu, left := 0, allowed.Count(); left > 0; cpu++ {
		if !allowed.IsSet(cpu) {
			continue
		}
		left--
		core, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		if err == nil && seen[string(core)] {
			siblings = append(siblings, cpu)
			continue
		}
		seen[string(core)] = true
		first = append(first, cpu)
	}
	return append(first, siblings...)
}

// pin keeps every thread of this process on one CPU; those to come inherit it.
// GOMAXPROCS stays what it is: having been set, it no longer follows the number
// of CPUs allowed, which the runtime looks up now and then.
func pin(cpu int) error {
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var set unix.CPUSet
	set.Set(cpu)
	pinned := map[string]bool{}
	for more := true; more; {
		more = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || pinned[t.Name()] {
				continue
			}
			pinned[t.Name()], more = true, true
			if err := unix.SchedSetaffinity(tid, &set); err != nil && err != unix.ESRCH {
				return os.NewSyscallError("sched_setaffinity", err)
			}
		}
	}
	return nil
}
