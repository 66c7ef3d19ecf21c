//go:build !unix

package mpirun

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }

// play does nothing: no test starts ranks on this system.
func play(string, []string) int { return 99 }
