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

// Open MPI's commands where MPICH's have the plain names, and then those.
var (
	openMPICC  = []string{"mpicc.openmpi", "mpicc"}
	openMPIRun = []string{"mpirun.openmpi", "mpirun"}
)

// OpenMPI is a program that measures Open MPI over TCP, compiled on this
// machine.
type OpenMPI struct {
	run, program, dir string
}

// NewOpenMPI compiles it. Without Open MPI and its compiler (Debian:
// openmpi-bin, libopenmpi-dev) it returns an error that wraps
// exec.ErrNotFound. Close removes it.
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

// findOpenMPI is the first of some commands that is Open MPI's.
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
	return "", fmt.Errorf("peers: none of %v is Open MPI's: %w", names, exec.ErrNotFound)
}

// Measure runs a test of measure.c on some ranks and returns its figure.
func (o *OpenMPI) Measure(ctx context.Context, ranks int, test string, bytes, rounds int) (float64, error) {
	out, err := runProgram(ctx, append(mpirunTCPArgs(o.run, ranks), o.program, test, strconv.Itoa(bytes), strconv.Itoa(rounds)))
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err != nil || v <= 0 {
		return 0, fmt.Errorf("peers: Open MPI's %s printed %q", test, out)
	}
	return v, nil
}

// mpirunTCPArgs starts ranks that talk by TCP on the loopback interface: as many as
// there are CPUs on one each, where they poll, and more in turns, where the kernel has
// them: to be bound as our own are makes them no faster, and Open MPI does not heed
// what this process is bound to.
func mpirunTCPArgs(mpirun string, ranks int) []string {
	bind, yield := "hwthread", "0"
	if ranks > runtime.NumCPU() {
		bind, yield = "none", "1"
	}
	const loopback = "127.0.0.0/8"
	return []string{mpirun, "--allow-run-as-root", "--oversubscribe", "--use-hwthread-cpus", "--bind-to", bind,
		"--mca", "mpi_yield_when_idle", yield,
		"--mca", "pml", "ob1", "--mca", "osc", "^sm,ucx", "--mca", "btl", "tcp,self",
		"--mca", "btl_tcp_if_include", loopback, "--mca", "oob_tcp_if_include", loopback,
		"-n", strconv.Itoa(ranks)}
}

// Close removes the program.
func (o *OpenMPI) Close() error { return os.RemoveAll(o.dir) }
