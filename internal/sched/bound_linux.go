package sched

import "golang.org/x/sys/unix"

// BoundProcessor returns the number of the processor to which the calling thread is bound. ok is false
// if it may run on several.
func BoundProcessor() (processor int, ok bool) {
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || all.Count() != 1 {
		return 0, false
	}
	for !all.IsSet(processor) {
		processor++
	}
	return processor, true
}
