//go:build interop && linux

package launch

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slurm is a cluster of Slurm whose nodes n1 to n3, of two processors each, are on this
// host.
type slurm struct{ dir string }

const slurmConf = `ClusterName=softrnic
SlurmctldHost=%[2]s(10.78.0.1)
SlurmctldPort=16817
AuthType=auth/munge
AuthInfo=socket=%[1]s/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=%[1]s/state
SlurmdSpoolDir=%[1]s/spool.%%n
SlurmctldPidFile=%[1]s/slurmctld.pid
SlurmdPidFile=%[1]s/slurmd.%%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=1
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
NodeName=n[1-3] NodeHostname=%[2]s NodeAddr=10.78.0.1 Port=[17001-17003] CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:8 State=UP
`

// newSlurm starts the daemons, which run until the test ends.
func newSlurm(t *testing.T) *slurm {
	s := &slurm{dir: t.TempDir()}
	require.NoError(t, os.Chmod(filepath.Dir(s.dir), 0o755))
	path := func(name string) string { return filepath.Join(s.dir, name) }
	require.NoError(t, os.Mkdir(path("state"), 0o755))
	require.NoError(t, os.Mkdir(path("munge"), 0o700))
	key := make([]byte, 128)
	rand.Read(key)
	require.NoError(t, os.WriteFile(path("munge/key"), key, 0o600))
	require.NoError(t, os.WriteFile(path("slurm.conf"), fmt.Appendf(nil, slurmConf, s.dir, hostname), 0o644))
	// Slurm resolves addresses only if there is an interface beside loopback.
	shell(t, "ip", "link", "set", "lo", "up")
	shell(t, "ip", "link", "add", "slurm", "type", "bridge")
	shell(t, "ip", "addr", "add", "10.78.0.1/24", "dev", "slurm")
	shell(t, "ip", "link", "set", "slurm", "up")

	startDaemon(t, path("munged.log"), nil, "munged", "--foreground", "--force", "--key-file="+path("munge/key"), "--socket="+path("munge.sock"),
		"--pid-file="+path("munge/pid"), "--seed-file="+path("munge/seed"))
	s.waitFor(t, "munged", func() bool { _, err := os.Stat(path("munge.sock")); return err == nil })
	startDaemon(t, path("slurmctld.log"), nil, "slurmctld", "-D", "-f", path("slurm.conf"))
	for _, node := range []string{"n1", "n2", "n3"} {
		startDaemon(t, path("slurmd."+node+".log"), nil, "slurmd", "-D", "-f", path("slurm.conf"), "-N", node)
	}
	s.waitFor(t, "three idle nodes", func() bool {
		out, _ := s.command(t.Context(), "sinfo", "-h", "-t", "idle", "-o", "%D").Output()
		return strings.TrimSpace(string(out)) == "3"
	})
	return s
}

// waitFor waits until a condition of the daemons holds.
func (s *slurm) waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), what)
	}
}

// command returns a command with the environment of the cluster.
func (s *slurm) command(ctx context.Context, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+filepath.Join(s.dir, "slurm.conf"))
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run runs a command line in a shell to its end. $softrnic is the command softrnic, and $rank this
// program as a rank.
func (s *slurm) run(t *testing.T, line string) result {
	t.Helper()
	command, err := softrnic()
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	cmd := s.command(ctx, "sh", "-c", line)
	cmd.Env = append(cmd.Env, "softrnic="+command, "rank="+self+" rank")
	cmd.Dir = s.dir
	return runCommand(t, cmd, line)
}

// sums checks that the output is that of n ranks which exited with status 0.
func sums(t *testing.T, n int, output string) {
	t.Helper()
	want := fmt.Sprintf(`(?m)^rank \d+ of %d: sum %d, left -?\d+, addr`, n, n*(n-1)/2)
	require.Len(t, regexp.MustCompile(want).FindAllString(output, -1), n, output)
}

func TestSlurm(t *testing.T) {
	t.Parallel()
	requirePrograms(t, "slurm-wlm, munge, iproute2", "slurmctld", "slurmd", "munged", "srun", "ip")
	s := newSlurm(t)
	t.Run("jobs", func(t *testing.T) {
		for name, k := range map[string]struct {
			ranks int
			line  string
		}{
			"srun, PMI-1":              {4, "srun -Q --mpi=pmi2 -N 2 -n 4 $rank sum"},
			"srun, PMI-2":              {4, "SOFTRNIC_PMI=2 srun -Q --mpi=pmi2 -N 3 -n 4 $rank sum"},
			"srun, TCP":                {3, "SOFTRNIC_MPI_NET=tcp srun -Q --mpi=pmi2 -N 3 -n 3 $rank sum"},
			"srun of one task":         {1, "srun -Q -n 1 $rank sum"},
			"salloc":                   {4, "salloc -Q -N 2 -n 4 $softrnic mpirun $rank sum"},
			"salloc, one node":         {2, "salloc -Q -N 1 -n 2 $softrnic mpirun $rank sum"},
			"salloc, fewer ranks":      {3, "salloc -Q -N 2 -n 4 $softrnic mpirun -n 3 $rank sum"},
			"salloc, more ranks":       {5, "salloc -Q -N 2 -n 4 $softrnic mpirun --oversubscribe -n 5 $rank sum"},
			"salloc, hosts of another": {3, "salloc -Q -N 2 -n 4 $softrnic mpirun --hosts localhost -n 3 $rank sum"},
			"salloc, UD":               {6, "salloc -Q -N 3 --ntasks-per-node=2 $softrnic mpirun --net ud $rank sum"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := s.run(t, k.line)
				require.Zero(t, r.status)
				sums(t, k.ranks, r.stdout)
			})
		}
		t.Run("sbatch", func(t *testing.T) {
			t.Parallel()
			script := "#!/bin/sh\n$softrnic mpirun $rank sum || exit 3\nsrun -Q --mpi=pmi2 $rank sum || exit 4\n$rank sum\n"
			require.NoError(t, os.WriteFile(filepath.Join(s.dir, "script"), []byte(script), 0o755))
			r := s.run(t, "sbatch -Q --wait -N 2 -n 4 -o $PWD/out -e $PWD/err script")
			require.Zero(t, r.status)
			out, err := os.ReadFile(filepath.Join(s.dir, "out"))
			require.NoError(t, err)
			require.Len(t, regexp.MustCompile(`(?m)^rank \d of 4: sum 6,`).FindAllString(string(out), -1), 8, "%s", out)
			sums(t, 1, string(out)) // a program that the script starts alone
			diag, err := os.ReadFile(filepath.Join(s.dir, "err"))
			require.NoError(t, err)
			require.Contains(t, string(diag), "which has 4 tasks: `softrnic mpirun` or `srun --mpi=pmi2` starts a rank for each")
		})
		t.Run("what is refused", func(t *testing.T) {
			t.Parallel()
			for line, want := range map[string]string{
				"srun -Q -n 2 $rank sum":                            "SLURM_PROCID=0: rank of a job of 2 started by srun without a process manager, where ranks cannot find one another; use srun --mpi=pmi2",
				"salloc -Q -n 2 $softrnic mpirun -n 3 $rank sum":    "3 ranks are more than the 2 that Slurm job",
				"salloc -Q -n 2 srun -Q $softrnic mpirun $rank sum": "srun runs 2 launchers",
			} {
				r := s.run(t, line)
				require.NotZero(t, r.status)
				require.Contains(t, r.stdout+r.stderr, want)
			}
		})
		t.Run("a killed rank", func(t *testing.T) {
			t.Parallel()
			r := s.run(t, "salloc -Q -N 2 -n 3 $softrnic mpirun $rank killrank")
			require.Equal(t, 128+9, r.status)
			require.Regexp(t, `rank 1 on n\d \(pid \d+\) was ended by signal 9 \(killed\)`, r.stderr)
			r = s.run(t, "srun -Q --mpi=pmi2 -N 2 -n 3 $rank killrank")
			require.NotZero(t, r.status)
			// Nothing notifies the other ranks: they detect the failure themselves, and report host
			// and process.
			found := regexp.MustCompile(`waited for (\d+) ms: .*rank 1 \(\S+, pid \d+\) is lost`).FindStringSubmatch(r.stdout + r.stderr)
			require.NotNil(t, found, r.stdout+r.stderr)
			waited, err := strconv.Atoi(found[1])
			require.NoError(t, err)
			t.Logf("a rank killed under srun is named after %d ms", waited)
			require.Less(t, waited, 10_000, "2 s on a machine that is not busy")
		})
		t.Run("a killed agent", func(t *testing.T) {
			t.Parallel()
			r := s.run(t, "salloc -Q -N 2 -n 3 $softrnic mpirun $rank killagent")
			require.Equal(t, 1, r.status)
			require.Regexp(t, `n\d was lost with ranks? .*: agent has ended`, r.stderr)
		})
		t.Run("a time limit", func(t *testing.T) {
			t.Parallel()
			// Limits are whole minutes, so this one is shortened while the job runs.
			r := s.run(t, `salloc -Q -t 1 -N 2 -n 3 sh -c '$softrnic mpirun $rank hang & sleep 1; scontrol update jobid=$SLURM_JOB_ID endtime=now; wait $!'`)
			require.NotZero(t, r.status)
			require.Contains(t, r.stderr, "DUE TO TIME LIMIT")
			// Slurm ends ranks and agents at once, in any order.
			require.Regexp(t, `softrnic: (rank \d on n\d \(pid \d+\) was ended by signal 15|n\d was lost with ranks? .*: agent was terminated)`, r.stderr)
		})
	})
}
