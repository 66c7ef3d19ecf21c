package peers

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

//go:embed openmpi/measure.c
var measureC []byte

// Names of Open MPI's commands. The first is used where MPICH has the plain name.
var (
	openMPICC  = []string{"mpicc.openmpi", "mpicc"}
	openMPIRun = []string{"mpirun.openmpi", "mpirun"}
)

// OpenMPI is a program that measures Open MPI over TCP, compiled on this machine.
type OpenMPI struct {
	run, program, dir string
}

// NewOpenMPI compiles the program. It returns an error that wraps exec.ErrNotFound if Open MPI
// or its compiler is not installed (Debian: openmpi-bin, libopenmpi-dev). The caller must close
// the result.
func NewOpenMPI(ctx context.Context) (*OpenMPI, error) {
	cc, err := findOpenMPI(ctx, openMPICC)
	if err != nil {
		return nil, err
	}
	o := &OpenMPI{}
	if o.run, err = findOpenMPI(ctx, openMPIRun); err != nil {
		return nil, err
	}
	if o.dir, err = os.MkdirTemp("", "openmpi-"); err != nil {
		return nil, err
	}
	source := filepath.Join(o.dir, "measure.c")
	o.program = filepath.Join(o.dir, "measure")
	if err = os.WriteFile(source, measureC, 0o600); err == nil {
		_, err = runProgram(ctx, []string{cc, "-O2", "-o", o.program, source})
	}
	if err != nil {
		_ = o.Close()
		return nil, err
	}
	return o, nil
}

// findOpenMPI returns the path of the first named command that belongs to Open MPI.
func findOpenMPI(ctx context.Context, names []string) (string, error) {
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
		if strings.HasSuffix(name, ".openmpi") || err == nil && strings.Contains(string(out), "Open MPI") {
			return path, nil
		}
	}
	return "", fmt.Errorf("peers: no Open MPI command among %v: %w", names, exec.ErrNotFound)
}

// A Network is the network of Open MPI's ranks.
type Network string

const (
	OverTCP    Network = "tcp"    // on the loopback interface
	OverShared Network = "shared" // shared memory, Open MPI's default within a machine
)

// Measure runs a test of measure.c on the given number of ranks and returns its figure.
func (o *OpenMPI) Measure(ctx context.Context, over Network, ranks int, test string, bytes, rounds int) (float64, error) {
	out, err := runProgram(ctx, append(mpirunArgs(o.run, over, ranks), o.program, test, strconv.Itoa(bytes), strconv.Itoa(rounds)))
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err != nil || v <= 0 {
		return 0, fmt.Errorf("peers: Open MPI's %s printed %q", test, out)
	}
	return v, nil
}

// mpirunArgs returns the mpirun command line for ranks on this machine. Up to the number of CPUs each rank has a CPU of its own and polls. Beyond
// it ranks are not bound and yield when idle. Binding them as our ranks are bound does not make
// them faster, and Open MPI ignores the affinity of this process.
func mpirunArgs(mpirun string, over Network, ranks int) []string {
	bind, yield := "hwthread", "0"
	if ranks > runtime.NumCPU() {
		bind, yield = "none", "1"
	}
	const loopback = "127.0.0.0/8"
	args := []string{mpirun, "--allow-run-as-root", "--oversubscribe", "--use-hwthread-cpus", "--bind-to", bind,
		"--mca", "mpi_yield_when_idle", yield,
		"--mca", "oob_tcp_if_include", loopback, "--mca", "pml", "ob1", "-n", strconv.Itoa(ranks)}
	if over == OverShared {
		return append(args, "--mca", "btl", "^tcp") // the transport is called vader before version 5, and sm from then on
	}
	return append(args, "--mca", "osc", "^sm,ucx", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", loopback)
}

// Close removes the program.
func (o *OpenMPI) Close() error { return os.RemoveAll(o.dir) }

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
	out, err := runProgram(ctx, append(mpirunArgs(n.run, OverTCP, ranks), n.program))
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
