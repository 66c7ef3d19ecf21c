//go:build unix

package mpirun

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// newSession starts a command in its own session: Ctrl-C reaches only the launcher, which stops
// the agents, and ssh has no terminal for questions.
func newSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// ignoreTTYInput makes reading from the terminal fail, instead of stopping the launcher, when it
// runs in the background.
func ignoreTTYInput() { signal.Ignore(syscall.SIGTTIN) }

// ForwardedSignals are the signals that the launcher passes on to the ranks instead of terminating
// the job.
var ForwardedSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}
