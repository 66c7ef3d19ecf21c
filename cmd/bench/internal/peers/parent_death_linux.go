package peers

import (
	"os/exec"
	"syscall"
)

// killWithParent makes the kernel kill the program when this process ends. The calling
// goroutine must keep its thread locked until the program has ended.
func killWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
