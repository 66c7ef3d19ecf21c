package udpraw

import "golang.org/x/sys/unix"

// yield lets another thread have the core. Where both ends spin on one core, or
// others want it, a spinner that does not yield burns the time its peer needs.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
