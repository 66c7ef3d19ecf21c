//go:build unix

package measure

import (
	"syscall"
	"time"
)

// processUsage returns the processor time of the process and its voluntary context switches.
func processUsage() (processor time.Duration, switches int64, err error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, 0, err
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), int64(r.Nvcsw), nil
}
