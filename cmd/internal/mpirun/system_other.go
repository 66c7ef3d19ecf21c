//go:build !unix

package mpirun

import (
	"os"
	"os/exec"
)

// newSession starts a command in its own session: Ctrl-C reaches only the launcher, which stops
// the agents, and ssh has no terminal for questions.
func newSession(*exec.Cmd) {}

// ignoreTTYInput makes reading from the terminal fail, instead of stopping the launcher, when it
// runs in the background.
func ignoreTTYInput() {}

// ForwardedSignals are the signals that the launcher passes on to the ranks instead of terminating
// the job.
var ForwardedSignals []os.Signal
