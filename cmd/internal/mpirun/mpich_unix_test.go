//go:build unix

package mpirun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mpichProgram is a program of MPI, with the constants of MPICH's binary interface
// (MPI_COMM_WORLD, MPI_INT, MPI_SUM, MPI_IN_PLACE), so that it needs its library
// only.
const mpichProgram = `
#include <stdio.h>
#include <stdlib.h>
extern int MPI_Init(int *, char ***), MPI_Finalize(void), MPI_Abort(int, int);
extern int MPI_Comm_rank(int, int *), MPI_Comm_size(int, int *);
extern int MPI_Allreduce(const void *, void *, int, int, int, int);
int main(int argc, char **argv)
{
	int world = 0x44000000, rank, size, sum;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	sum = rank;
	MPI_Allreduce((void *)-1, &sum, 1, 0x4c000405, 0x58000003, world);
	printf("rank %d of %d: sum %d\n", rank, size, sum);
	fflush(stdout);
	if (argc > 1 && rank == 1)
		MPI_Abort(world, atoi(argv[1]));
	return MPI_Finalize();
}
`

// TestMPICH checks that programs linked with MPICH run under softrnic mpirun.
func TestMPICH(t *testing.T) {
	dir := t.TempDir()
	source, made := filepath.Join(dir, "sum.c"), filepath.Join(dir, "sum")
	require.NoError(t, os.WriteFile(source, []byte(mpichProgram), 0o600))
	if out, err := exec.Command("cc", "-o", made, source, "-l:libmpich.so.12").CombinedOutput(); err != nil {
		t.Skipf("needs a C compiler and MPICH's library (Debian: package mpich): %s", strings.TrimSpace(string(out)))
	}
	r := runJob(t, Options{Programs: []Program{{N: 4, Args: []string{made}}}, Prefix: true})
	require.NoError(t, r.err)
	for _, line := range []string{"[0] rank 0 of 4: sum 6\n", "[1] rank 1 of 4: sum 6\n", "[2] rank 2 of 4: sum 6\n", "[3] rank 3 of 4: sum 6\n"} {
		require.Contains(t, r.stdout, line)
	}
	// PMI-1 cannot carry the reason.
	f := runJob(t, Options{Programs: []Program{{N: 2, Args: []string{made, "7"}}}}).failed(t)
	require.Equal(t, 7, f.Status)
	require.Contains(t, f.Reason, "aborted the job with code 7; the other rank was ended")
}
