//go:build !linux

package sched

// runnablePerProcessor returns 0: the number of runnable threads is unknown.
func runnablePerProcessor() int { return 0 }
