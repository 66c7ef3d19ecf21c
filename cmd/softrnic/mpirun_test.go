package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/internal/mpirun"
)

// mpirunLine runs a command line of mpirun, in which a shell script is one word.
func mpirunLine(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	quiet(t)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	var out, diag bytes.Buffer
	a := newApp(&out, &diag)
	status = a.runCommand(t.Context(), append([]string{"mpirun"}, args...))
	return status, out.String(), diag.String()
}

func TestMpirun(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(hosts, []byte("localhost slots=2 # me\n"), 0o600))
	t.Setenv("FROM_HERE", "here")
	t.Setenv("SOFTRNIC_MPI_REPORT_SIGNAL", "")
	say := `echo $PMI_RANK/$PMI_SIZE "$A $B $FROM_HERE $SOFTRNIC_MPI_NET|$SOFTRNIC_IMPAIR|$SOFTRNIC_ADDR"`
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"-n", "1", "echo", "-n", "-x", "--", "a"}, []string{"-x -- a"}},
		{[]string{"echo", "one"}, []string{"one"}},
		{[]string{"--report-after", "20", "sh", "-c", "echo $SOFTRNIC_MPI_WATCHDOG $SOFTRNIC_MPI_REPORT_SIGNAL"}, []string{"20s USR1"}},
		{[]string{"-x", "SOFTRNIC_MPI_REPORT_SIGNAL=USR2", "sh", "-c", "echo $SOFTRNIC_MPI_WATCHDOG $SOFTRNIC_MPI_REPORT_SIGNAL"}, []string{"USR2"}},
		{[]string{"-np", "2", "-l", "sh", "-c", say}, []string{"[0] 0/2   here ||", "[1] 1/2   here ||"}},
		{[]string{"-f", hosts, "sh", "-c", say}, []string{"0/2   here ||", "1/2   here ||"}},
		{[]string{"--allow-run-as-root", "--oversubscribe", "-bind-to", "none:overload-allowed", "--host", "localhost:3", "--tag-output", "-x", "A=1", "-x", "FROM_HERE", "-n", "1", "sh", "-c", say}, []string{"[0] 0/1 1  here ||"}},
		{[]string{"--net", "tcp", "--impair", "loss 1% seed 7", "--addr", "127.0.0.0/8", "--genv", "A=all", "-genv", "B=all", "-env", "A=1", "-n", "1", "sh", "-c", say, ":", "-np", "2", "-x", "B=2", "-wdir", "/", "sh", "-c", say + "; pwd"}, []string{
			"/", "/", "0/3 1 all here tcp|loss 1% seed 7|127.0.0.0/8", "1/3 all 2 here tcp|loss 1% seed 7|127.0.0.0/8", "2/3 all 2 here tcp|loss 1% seed 7|127.0.0.0/8"}},
	} {
		status, stdout, stderr := mpirunLine(t, c.args...)
		require.Zero(t, status, stderr)
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		slices.Sort(lines)
		require.Equal(t, c.want, lines)
		require.Empty(t, stderr)
	}
}

// TestMpirunInABatchJob checks that a job of a batch system has as many ranks as the batch job has
// tasks, unless the user sets another number.
func TestMpirunInABatchJob(t *testing.T) {
	for name, value := range map[string]string{"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "ENVIRONMENT": "BATCH"} {
		t.Setenv(name, value)
	}
	for line, want := range map[string]int{"": 4, "-n 2": 2, "-n 5 --oversubscribe": 5, "--hosts localhost:3": 3, "--hosts localhost -n 6": 6} {
		status, stdout, stderr := mpirunLine(t, append(strings.Fields(line), "sh", "-c", "echo of $PMI_SIZE")...)
		require.Zero(t, status, stderr)
		require.Equal(t, strings.Repeat(fmt.Sprintf("of %d\n", want), want), stdout, line)
	}
	status, _, stderr := mpirunLine(t, "-n", "5", "true")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "5 ranks are more than the 4 that Slurm job 1 has allocated; --oversubscribe")
	t.Setenv("SLURM_NTASKS", "four")
	status, _, stderr = mpirunLine(t, "true")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "SLURM_NTASKS=four")
}

func TestExitStatusOfMpirun(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		text   string
	}{
		{[]string{"-n", "3", "sh", "-c", "test $PMI_RANK != 1 || exit 42; exec sleep 60"}, 42, "rank 1 on localhost (pid "},
		{[]string{"-n", "2", "sh", "-c", "test $PMI_RANK != 0 || kill -9 $$; exec sleep 60"}, 137, "was ended by signal 9 (killed); the other rank was ended"},
		{[]string{"--timeout", "0.2", "sleep", "60"}, 124, "no end after 200ms: has not joined: rank 0"},
		{[]string{"/nonexistent"}, 127, "could not be started"},
		{nil, 2, "no program"},
		{[]string{"-n", "x", "true"}, 2, "--np"},
		{[]string{"-n", "-1", "true"}, 2, "-1 times"},
		{[]string{"-n", "0", "true"}, 2, "want at least 1 rank"},
		{[]string{"true", ":", "-n", "0", "true"}, 2, "want at least 1 rank"},
		{[]string{"--nonsense", "true"}, 2, "--nonsense"},
		{[]string{"--timeout", "soon", "true"}, 2, "a time such as 30s"},
		{[]string{"--bind-to", "socket", "true"}, 2, "want auto, none, core or hwthread"},
		{[]string{"--hosts", "a", "-f", "b", "true"}, 2, "either"},
		{[]string{"--hosts", "a:x", "true"}, 2, `--hosts a:x: entry 1: host "a:x": want a number of ranks`},
		{[]string{"-f", "/nonexistent", "true"}, 2, "/nonexistent"},
		{[]string{"-x", "SOFTRNIC_NO_SUCH", "true"}, 2, "is not set: want SOFTRNIC_NO_SUCH=VALUE"},
		{[]string{"-x", "PMI_FD=3", "true"}, 2, "set by mpirun"},
		{[]string{"true", ":"}, 2, "after the last :"},
		{[]string{"true", ":", "--ppn", "1", "true"}, 2, "after a : the flags are"},
		{[]string{"true", ":", "-x", "SOFTRNIC_NO_SUCH", "true"}, 2, "is not set: want SOFTRNIC_NO_SUCH=VALUE"},
		{[]string{"--impair", "nonsense", "true"}, 2, "nonsense"},
		{[]string{"-j", "true"}, 2, "--json: not supported"},
	} {
		status, stdout, stderr := mpirunLine(t, c.args...)
		require.Equal(t, c.status, status, "%v: %s", c.args, stderr)
		require.Contains(t, stderr, c.text)
		require.Empty(t, stdout)
	}
	status, stdout, _ := mpirunLine(t, "--help")
	require.Zero(t, status)
	require.Contains(t, stdout, "--launcher-exec")
}

func TestTwoDashes(t *testing.T) {
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	programFlags(f, new(mpirun.Program))
	f.BoolP("prefix", "l", false, "")
	f.Int("ppn", 0, "")
	f.SetNormalizeFunc(canonicalFlagName)
	for line, want := range map[string]string{
		"-np 4 prog -np 5":           "--np 4 prog -np 5",
		"-n 4 -l -wdir /x prog":      "-n 4 -l --wdir /x prog",
		"-wd=/x -N 2 prog -l":        "--wd=/x --N 2 prog -l",
		"--np 4 -env A=-np prog":     "--np 4 --env A=-np prog",
		"-x -np prog -np":            "-x -np prog -np", // the value of -x
		"-tag-output -np 2 -- -prog": "--tag-output --np 2 -- -prog",
		"-n4 -l prog":                "-n4 -l prog",
		"- -np":                      "- -np",
	} {
		require.Equal(t, strings.Fields(want), doubleDashes(f, strings.Fields(line)), line)
	}
}
