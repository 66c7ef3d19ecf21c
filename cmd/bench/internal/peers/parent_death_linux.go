package peers

import (
	"os/exec"
	"syscall"
)

// killWithParent makes the kernel end the program if this process is killed.
// The calling goroutine must keep its thread until the program has ended.
func killWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
