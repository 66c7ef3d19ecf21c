package peers

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// NPB is one of NAS' own programs, which somebody has built with Open MPI.
type NPB struct{ run, program string }

// FindNPB looks where commands are for the program of a kernel and a class, by
// the name that NPB's makefiles give it: is.A.x. Without it, or without Open MPI,
// it returns an error that wraps exec.ErrNotFound.
func FindNPB(ctx context.Context, kernel, class string) (*NPB, error) {
	n := &NPB{}
	var err error
	if n.program, err = exec.LookPath(kernel + "." + class + ".x"); err != nil {
		return nil, err
	}
	n.run, err = findOpenMPI(ctx, openMPIRun)
	return n, err
}

// Mops runs it on some ranks over TCP and returns its millions of operations a
// second. A result that is not verified is an error.
func (n *NPB) Mops(ctx context.Context, ranks int) (float64, error) {
	out, err := runProgram(ctx, append(mpirunTCPArgs(n.run, ranks), n.program))
	if err != nil {
		return 0, err
	}
	return parseNPB(out)
}

// parseNPB reads the block of lines at the end:
//
//	Mop/s total     =                   176.77
//	Verification    =               SUCCESSFUL
func parseNPB(out string) (mops float64, err error) {
	verified := false
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(line, "=")
		switch key, value = strings.TrimSpace(key), strings.TrimSpace(value); key {
		case "Mop/s total":
			mops, err = strconv.ParseFloat(value, 64)
		case "Verification":
			verified = value == "SUCCESSFUL"
		}
	}
	if err != nil || mops <= 0 || !verified {
		return 0, fmt.Errorf("peers: NPB printed no verified result: %q", out)
	}
	return mops, nil
}
