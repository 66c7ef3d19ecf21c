//go:build !unix

package mpirun

import "os/exec"

func apart(*exec.Cmd) {}

func inBackground() {}

// inherits says whether ranks can inherit a socket.
const inherits = false
