package pmi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// envVersion is the environment variable of the PMI version, "1" (default) or "2".
const envVersion = "SOFTRNIC_PMI"

// newEnvironmentError returns the ErrEnvironment of a variable.
func newEnvironmentError(name, value, cause string) error {
	return fmt.Errorf("%w: %s=%s: %s", ErrEnvironment, name, value, cause)
}

// Open connects to the manager that started this process, or returns that of a job of
// one rank if there is none. ctx limits Open only. There is one connection per process:
// Open can be called once, and child processes are not part of the job. It reads PMI_FD,
// PMI_RANK, PMI_SIZE, PMI_PORT, PMI_ID and PMI_JOBID, SOFTRNIC_PMI, which is the version of the
// protocol (1, the default, or 2), and SOFTRNIC_PMI_SECRET, for a manager at PMI_PORT.
func Open(ctx context.Context) (Manager, error) {
	managed := os.Getenv("PMI_FD") != "" || os.Getenv("PMI_PORT") != ""
	if managed && joined.Swap(true) {
		return nil, errors.New("pmi: open: this process has already joined its job")
	}
	return openFrom(ctx, os.Getenv)
}

// joined says that this process has, or had, a connection.
var joined atomic.Bool

func openFrom(ctx context.Context, getenv func(string) string) (Manager, error) {
	c := &client{}
	switch version := getenv(envVersion); version {
	case "", "1":
		c.protocol = &protocolV1{}
	case "2":
		c.protocol = protocolV2{}
	default:
		return nil, newEnvironmentError(envVersion, version, "want 1 or 2")
	}
	var err error
	switch {
	case getenv("PMI_FD") != "":
		err = c.useInherited(getenv)
	case getenv("PMI_PORT") != "":
		err = c.dialPort(ctx, getenv)
	default:
		if err := checkLaunchers(getenv); err != nil {
			return nil, err
		}
		if hint := singletonHint(getenv); hint != "" {
			slog.Warn(hint)
		}
		return NewLocal(1)[0], nil
	}
	if err != nil {
		return nil, err
	}
	return c.joinManager(ctx)
}

// joinManager joins the job and returns the client as a Manager.
func (c *client) joinManager(ctx context.Context) (Manager, error) {
	if err := c.joinJob(ctx); err != nil {
		c.Close()
		if c.err != nil { // c.err has the name
			return nil, fmt.Errorf("pmi: join job: %w", err)
		}
		return nil, fmt.Errorf("pmi: join job at %s: %w", c.name, err)
	}
	return c, nil
}

// envInt parses a variable as a number that is at least least.
func envInt(getenv func(string) string, name string, least int) (int, error) {
	text := getenv(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > maxSize {
		return 0, newEnvironmentError(name, text, fmt.Sprintf("want a number from %d on", least))
	}
	return n, nil
}

// useInherited connects to the socket PMI_FD.
func (c *client) useInherited(getenv func(string) string) (err error) {
	fd, err := envInt(getenv, "PMI_FD", 0)
	if err != nil {
		return err
	}
	if c.rank, err = envInt(getenv, "PMI_RANK", 0); err != nil {
		return err
	}
	if c.size, err = envInt(getenv, "PMI_SIZE", 1); err != nil {
		return err
	}
	s, err := openInherited(fd)
	if err != nil {
		return newEnvironmentError("PMI_FD", strconv.Itoa(fd), err.Error())
	}
	c.conn = newConn(s, "PMI_FD="+strconv.Itoa(fd))
	return nil
}

// dialPort connects to PMI_PORT and identifies this process. With PMI-1 the manager sends
// the size of the job.
func (c *client) dialPort(ctx context.Context, getenv func(string) string) error {
	at := getenv("PMI_PORT")
	id, err := envInt(getenv, "PMI_ID", 0)
	if err != nil {
		return err
	}
	dialer := net.Dialer{Timeout: replyTimeout}
	s, err := dialer.DialContext(ctx, "tcp", at)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return newEnvironmentError("PMI_PORT", at, err.Error())
	}
	c.conn = newConn(s, "PMI_PORT="+at)
	c.rank = id
	secret := getenv(wire.EnvSecret)
	if _, two := c.protocol.(protocolV2); two && secret == "" {
		return nil // fullinit identifies the process
	}
	if err := c.sendInitAck(ctx, id, secret); err != nil {
		s.Close()
		return fmt.Errorf("pmi: join job at PMI_PORT=%s: %w", at, err)
	}
	return nil
}

func (c *client) sendInitAck(ctx context.Context, id int, secret string) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.unlock()
	hello := newRequestV1("initack", "initack", "pmiid", strconv.Itoa(id))
	if secret != "" {
		hello.message = hello.message.With("secret", secret)
	}
	m, err := c.roundTrip(ctx, hello)
	if err != nil {
		return err
	}
	if err := replyError(hello, m); err != nil {
		return err
	}
	// Three unsolicited messages follow.
	for _, set := range []struct {
		name string
		to   *int
	}{{"size", &c.size}, {"rank", &c.rank}, {"debug", new(int)}} {
		c.pending = &request{message: wire.New("set", set.name, "?"), reply: "set"}
		if m, err = c.awaitReply(ctx); err != nil {
			return err
		}
		if *set.to, err = m.Int(set.name); err != nil {
			return err
		}
	}
	return nil
}

// checkLaunchers returns an error if the environment is that of a rank whose launcher
// does not speak PMI: otherwise each rank would be a job of its own.
func checkLaunchers(getenv func(string) string) error {
	for _, l := range launchers {
		rank := getenv(l.rank)
		if rank == "" {
			continue
		}
		size := ""
		for _, name := range l.size {
			if size = getenv(name); size != "" {
				break
			}
		}
		if size == "1" {
			return nil
		}
		if l.rank == slurmRank && (size == "" || inBatchScript(getenv)) {
			continue
		}
		of := ""
		if size != "" {
			of = " of a job of " + size
		}
		return newEnvironmentError(l.rank, rank, fmt.Sprintf("rank%s started by %s, where ranks cannot find one another; use %s (or unset %s for a job of one rank)",
			of, l.name, l.instead, l.rank))
	}
	return nil
}

// launchers are the launchers that do not speak PMI, with their variables for the rank
// and the size of the job, the first of which is used.
var launchers = []struct {
	rank          string
	size          []string
	name, instead string
}{
	{"OMPI_COMM_WORLD_RANK", []string{"OMPI_COMM_WORLD_SIZE"}, "mpirun of Open MPI", "softrnic mpirun or mpiexec.hydra"},
	{"PMIX_RANK", []string{"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}, "a launcher that speaks PMIx only", "softrnic mpirun, mpiexec.hydra or srun --mpi=pmi2"},
	{"PMI_RANK", []string{"PMI_SIZE"}, "a process manager that gives it no connection (PMI_FD or PMI_PORT)", "softrnic mpirun, mpiexec.hydra or srun --mpi=pmi2"},
	{slurmRank, []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"}, "srun without a process manager", "srun --mpi=pmi2"},
	{"MV2_COMM_WORLD_RANK", []string{"MV2_COMM_WORLD_SIZE"}, "mpirun_rsh of MVAPICH", "softrnic mpirun or mpiexec.hydra"},
	{"JSM_NAMESPACE_RANK", []string{"JSM_NAMESPACE_SIZE"}, "jsrun", "softrnic mpirun"},
	{"FLUX_TASK_RANK", []string{"FLUX_JOB_SIZE"}, "flux run without its PMI", "flux run -o pmi=simple"},
}

// slurmRank is the variable that Slurm sets to the rank of a task. It is also set in a
// batch script, which is no rank.
const slurmRank = "SLURM_PROCID"

// inBatchScript reports whether this process runs in a batch script of Slurm and not in
// a step of srun. A program in a script is a job of one rank.
func inBatchScript(getenv func(string) string) bool {
	return getenv("ENVIRONMENT") == "BATCH" && getenv("SLURM_STEP_ID") == "" && getenv("SLURM_STEPID") == "" && getenv("SLURM_STEP_NUM_TASKS") == ""
}

// singletonHint returns a warning for a job of one rank in an allocation of several
// tasks, or "": the user may have forgotten the launcher.
func singletonHint(getenv func(string) string) string {
	n := getenv("SLURM_NTASKS")
	if n == "" || n == "1" || getenv("SLURM_JOB_ID") == "" || getenv("SLURM_STEP_NUM_TASKS") != "" {
		return ""
	}
	return fmt.Sprintf("a job of one rank in Slurm job %s, which has %s tasks: `softrnic mpirun` or `srun --mpi=pmi2` starts a rank for each", getenv("SLURM_JOB_ID"), n)
}
