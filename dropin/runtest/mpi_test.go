package runtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

// runRanks runs a program of Open MPI over the UCX transports given, in a directory, and returns its output. UCX waits a
// second for an acknowledgement unless told otherwise.
func runRanks(t *testing.T, transports, impair, dir, ranks string, program ...string) string {
	t.Helper()
	environ := []string{"UCX_TLS=" + transports + ",self", "UCX_RC_VERBS_TIMEOUT=20ms", "OPENBLAS_NUM_THREADS=1",
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
	var flags []string
	if impair != "" {
		flags = []string{"--impair", impair}
	}
	return runProgram(t, environ, flags, append([]string{"mpirun.openmpi", "--oversubscribe", "-wdir", dir, "-np", ranks,
		"--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib"}, program...)...)
}

// The networks that programs of MPI run on: UCX's transports, and faults.
var mpiNetworks = []struct{ name, transports, impair string }{
	{"rc", "rc_verbs,ud_verbs", ""},
	{"rcLoss", "rc_verbs,ud_verbs", "loss 1% seed 7"},
	{"udLoss", "ud_verbs", "loss 1% seed 7"},
}

// TestOpenMPI runs collectives of Open MPI over UCX and requires the right sums.
func TestOpenMPI(t *testing.T) {
	programtest.NeedPrograms(t, "mpirun.openmpi", "mpicc.openmpi")
	needBuild(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "sums")
	out, err := exec.Command("mpicc.openmpi", "-Wall", "-Wextra", "-Werror", "-o", program, "testdata/sums.c").CombinedOutput()
	require.NoError(t, err, string(out))
	for _, n := range mpiNetworks {
		t.Run(n.name, func(t *testing.T) {
			require.Contains(t, runRanks(t, n.transports, n.impair, dir, "3", program), "3 ranks, all sums right\n")
		})
	}
}

// hpccInput is the input file of hpcc: a matrix of N = 96 in blocks of 24 on 2x2 ranks, and the defaults of its example.
const hpccInput = `HPLinpack benchmark input file
softrnic
HPL.out output file name (if any)
8       device out (6=stdout,7=stderr,file)
1       # of problems sizes (N)
96      Ns
1       # of NBs
24      NBs
0       PMAP process mapping (0=Row-,1=Column-major)
1       # of process grids (P x Q)
2       Ps
2       Qs
16.0    threshold
1       # of panel fact
2       PFACTs (0=left, 1=Crout, 2=Right)
1       # of recursive stopping criterium
4       NBMINs (>= 1)
1       # of panels in recursion
2       NDIVs
1       # of recursive panel fact.
1       RFACTs (0=left, 1=Crout, 2=Right)
1       # of broadcast
1       BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1       # of lookahead depth
1       DEPTHs (>=0)
2       SWAP (0=bin-exch,1=long,2=mix)
64      swapping threshold
0       L1 in (0=transposed,1=no-transposed) form
0       U  in (0=transposed,1=no-transposed) form
1       Equilibration (0=no,1=yes)
8       memory alignment in double (> 0)
##### This line is ignored #####
0       Number of additional problem sizes for PTRANS
1200    values of N
0       number of additional blocking sizes for PTRANS
40      values of NB
`

// TestHPCC runs HPC Challenge, whose benchmarks check their results: a linear system (HPL), a transposed matrix (PTRANS),
// updates of random places (MPIRandomAccess) and an FFT.
func TestHPCC(t *testing.T) {
	programtest.NeedPrograms(t, "mpirun.openmpi", "hpcc")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hpccinf.txt"), []byte(hpccInput), 0o644))
	runRanks(t, "rc_verbs,ud_verbs", "loss 0.1% seed 7", dir, "4", "hpcc")
	text, err := os.ReadFile(filepath.Join(dir, "hpccoutf.txt"))
	require.NoError(t, err)
	for _, want := range []string{"Success=1\n", "MPIRandomAccess_Errors=0\n", "MPIRandomAccess_LCG_Errors=0\n", "CommWorldProcs=4\n",
		"1 tests completed and passed residual checks", "0 tests completed and failed residual checks"} {
		require.Contains(t, string(text), want)
	}
	require.NotContains(t, string(text), "FAILED")
}

// TestOSU runs the OSU micro-benchmarks with validation (-c), if their directories are in PATH: Debian has no package.
func TestOSU(t *testing.T) {
	for _, program := range []string{"osu_latency", "osu_bibw", "osu_mbw_mr", "osu_allreduce", "osu_alltoall", "osu_bcast", "osu_reduce_scatter"} {
		t.Run(program, func(t *testing.T) {
			programtest.NeedPrograms(t, "mpirun.openmpi", program)
			ranks := "2"
			if !strings.HasPrefix(program, "osu_lat") && !strings.Contains(program, "bw") {
				ranks = "3"
			}
			out := runRanks(t, "rc_verbs,ud_verbs", "loss 0.1% seed 7", t.TempDir(), ranks, program, "-c", "-i", "10", "-x", "2", "-m", "4:65536")
			require.Equal(t, 15, strings.Count(out, "Pass"), out)
		})
	}
}
