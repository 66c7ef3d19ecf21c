//go:build unix

package mpirun

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// newSession starts a command in a session of its own: Ctrl-C is for the launcher, which
// tells the agents, and ssh has no terminal to ask questions on.
func newSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// ignoreTTYInput makes reading from the terminal an error and no stop, when the
// launcher runs in the background.
func ignoreTTYInput() { signal.Ignore(syscall.SIGTTIN) }

// ForwardedSignals are the signals that are the ranks' and do not end the job.
var ForwardedSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}

// canInheritSockets says whether ranks can inherit a socket.
const canInheritSockets = true
