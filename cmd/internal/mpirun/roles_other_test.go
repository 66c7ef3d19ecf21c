//go:build !unix

package mpirun

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }

// runRole does nothing: no test starts ranks on this system.
func runRole(string, []string) int { return 99 }
