//go:build unix

package sdp_test

import (
	"os"
	"syscall"
)

// freeze stops a process.
var freeze = func(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
