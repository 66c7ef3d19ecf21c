//go:build !unix

package mpirun

import (
	"os"
	"os/exec"
)

func newSession(*exec.Cmd) {}

func ignoreTTYInput() {}

// ForwardedSignals are the signals that are the ranks' and do not end the job.
var ForwardedSignals []os.Signal

// canInheritSockets says whether ranks can inherit a socket.
const canInheritSockets = false
