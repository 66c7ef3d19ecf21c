//go:build !linux

package peers

import "os/exec"

// killWithParent does nothing. Only Linux can kill a program with its parent.
func killWithParent(*exec.Cmd) {}
