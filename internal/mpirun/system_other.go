//go:build !unix

package mpirun

import (
	"os"
	"os/exec"
)

func apart(*exec.Cmd) {}

func inBackground() {}

// Forwarded are the signals that are the ranks' and do not end the job.
var Forwarded []os.Signal

// inherits says whether ranks can inherit a socket.
const inherits = false
