package cpus

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Cores returns the processors that this process may use, by core. It is empty where they are not
// known.
func Cores() (cores [][]int) {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return nil
	}
	index := map[string]int{}
	for cpu, left := 0, allowed.Count(); left > 0; cpu++ {
		if !allowed.IsSet(cpu) {
			continue
		}
		left--
		threads, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		core, known := index[string(threads)]
		if err != nil || !known {
			core = len(cores)
			cores = append(cores, nil)
			index[string(threads)] = core
		}
		cores[core] = append(cores[core], cpu)
	}
	return cores
}

// RunOn calls f in a thread that runs on the processors of a set, which processes started by f
// inherit. Without a set it only calls f. It returns f's error, or the error of binding, in which
// case f is not called. A thread that cannot be unbound ends with its goroutine.
func RunOn(set []int, f func() error) error {
	if len(set) == 0 {
		return f()
	}
	runtime.LockOSThread()
	var before, there unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		runtime.UnlockOSThread()
		return os.NewSyscallError("sched_getaffinity", err)
	}
	for _, cpu := range set {
		there.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &there); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("cannot be bound to processors %v: %w", set, os.NewSyscallError("sched_setaffinity", err))
	}
	defer func() {
		if unix.SchedSetaffinity(0, &before) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return f()
}

// PinCPU binds every thread of this process to one processor; new threads inherit it. GOMAXPROCS
// keeps its value: once set, it no longer follows the number of permitted processors.
func PinCPU(cpu int) error {
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var set unix.CPUSet
	set.Set(cpu)
	bound := map[string]bool{}
	for more := true; more; {
		more = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || bound[t.Name()] {
				continue
			}
			bound[t.Name()], more = true, true
			if err := unix.SchedSetaffinity(tid, &set); err != nil && err != unix.ESRCH {
				return os.NewSyscallError("sched_setaffinity", err)
			}
		}
	}
	return nil
}
