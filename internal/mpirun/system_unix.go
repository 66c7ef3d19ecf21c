//go:build unix

package mpirun

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// apart starts a command in a session of its own: Ctrl-C is for the launcher, which
// tells the agents, and ssh has no terminal to ask questions on.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// inBackground makes reading from the terminal an error and no stop, when the
// launcher runs in the background.
func inBackground() { signal.Ignore(syscall.SIGTTIN) }

// Forwarded are the signals that are the ranks' and do not end the job.
var Forwarded = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}

// inherits says whether ranks can inherit a socket.
const inherits = true
