//go:build !linux

package peers

import "os/exec"

// killWithParent does nothing: only Linux ends a program with its parent.
func killWithParent(*exec.Cmd) {}
