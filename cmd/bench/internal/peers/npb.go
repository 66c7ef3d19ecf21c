package peers

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// NPB is a program of the NAS Parallel Benchmarks, built with Open MPI.
type NPB struct{ run, program string }

// FindNPB looks in PATH for the program of a kernel and a class, by the name that NPB's
// makefiles give it: is.A.x. It returns an error that wraps exec.ErrNotFound if the program or
// Open MPI is not installed.
func FindNPB(ctx context.Context, kernel, class string) (*NPB, error) {
	n := &NPB{}
	var err error
	if n.program, err = exec.LookPath(kernel + "." + class + ".x"); err != nil {
		return nil, err
	}
	n.run, err = findOpenMPI(ctx, openMPIRun)
	return n, err
}

// Mops runs the program on the given number of ranks over TCP and returns millions of
// operations per second. A result that is not verified is an error.
func (n *NPB) Mops(ctx context.Context, ranks int) (float64, error) {
	out, err := runProgram(ctx, append(mpirunTCPArgs(n.run, ranks), n.program))
	if err != nil {
		return 0, err
	}
	return parseNPB(out)
}

// parseNPB parses the lines at the end of the output:
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
