package pmi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/pmi/wire"
)

// Variables of the environment that Open reads, beside PMI_FD, PMI_RANK, PMI_SIZE,
// PMI_PORT, PMI_ID and PMI_JOBID of the managers.
const (
	EnvVersion = "SOFTRNIC_PMI"        // "1" (so unless set) or "2": the version to speak
	EnvSecret  = "SOFTRNIC_PMI_SECRET" // what a manager at PMI_PORT has to be told
)

// EnvironmentError says that a variable of the environment has no sense.
type EnvironmentError struct{ Name, Value, Why string }

// Error names the variable and what is wrong.
func (e *EnvironmentError) Error() string {
	return fmt.Sprintf("%s=%s: %s", e.Name, e.Value, e.Why)
}

// Open returns the manager that has started this process, or that of a job of one
// rank if nobody has. ctx is for Open only. The connection is one for the process:
// Open can be called once, and processes that this one starts have no part in it.
func Open(ctx context.Context) (Manager, error) {
	managed := os.Getenv("PMI_FD") != "" || os.Getenv("PMI_PORT") != ""
	if managed && opened.Swap(true) {
		return nil, errors.New("this process has joined its job before: a second Open would be the same rank again")
	}
	return open(ctx, os.Getenv)
}

// opened says that this process has its connection, or has had it.
var opened atomic.Bool

func open(ctx context.Context, getenv func(string) string) (Manager, error) {
	c := &client{}
	switch version := getenv(EnvVersion); version {
	case "", "1":
		c.dialect = &v1{}
	case "2":
		c.dialect = v2{}
	default:
		return nil, &EnvironmentError{EnvVersion, version, "want 1 or 2"}
	}
	var err error
	switch {
	case getenv("PMI_FD") != "":
		err = c.inherit(getenv)
	case getenv("PMI_PORT") != "":
		err = c.dial(ctx, getenv)
	default:
		if err := foreign(getenv); err != nil {
			return nil, err
		}
		return NewLocal(1)[0], nil
	}
	if err != nil {
		return nil, err
	}
	return c.joined(ctx)
}

// joined is the manager once the job is joined.
func (c *client) joined(ctx context.Context) (Manager, error) {
	if err := c.begin(ctx); err != nil {
		c.Close()
		if c.dead != nil { // it has the name
			return nil, fmt.Errorf("joining the job: %w", err)
		}
		return nil, fmt.Errorf("joining the job at %s: %w", c.name, err)
	}
	return c, nil
}

// number reads a variable that has to be a number.
func number(getenv func(string) string, name string, least int) (int, error) {
	text := getenv(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > maxSize {
		return 0, &EnvironmentError{name, text, fmt.Sprintf("want a number from %d on", least)}
	}
	return n, nil
}

// inherit takes the socket PMI_FD.
func (c *client) inherit(getenv func(string) string) (err error) {
	fd, err := number(getenv, "PMI_FD", 0)
	if err != nil {
		return err
	}
	if c.rank, err = number(getenv, "PMI_RANK", 0); err != nil {
		return err
	}
	if c.size, err = number(getenv, "PMI_SIZE", 1); err != nil {
		return err
	}
	s, err := inherited(fd)
	if err != nil {
		return &EnvironmentError{"PMI_FD", strconv.Itoa(fd), err.Error()}
	}
	c.conn = newConn(s, "PMI_FD="+strconv.Itoa(fd))
	return nil
}

// dial connects to PMI_PORT and says who this is. Over PMI-1 the manager says how
// many there are.
func (c *client) dial(ctx context.Context, getenv func(string) string) error {
	at := getenv("PMI_PORT")
	id, err := number(getenv, "PMI_ID", 0)
	if err != nil {
		return err
	}
	dialer := net.Dialer{Timeout: patience}
	s, err := dialer.DialContext(ctx, "tcp", at)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &EnvironmentError{"PMI_PORT", at, err.Error()}
	}
	c.conn = newConn(s, "PMI_PORT="+at)
	c.rank = id
	secret := getenv(EnvSecret)
	if _, two := c.dialect.(v2); two && secret == "" {
		return nil // fullinit says it all
	}
	if err := c.introduce(ctx, id, secret); err != nil {
		s.Close()
		return fmt.Errorf("joining the job at PMI_PORT=%s: %w", at, err)
	}
	return nil
}

func (c *client) introduce(ctx context.Context, id int, secret string) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.unlock()
	hello := ask1("initack", "initack", "pmiid", strconv.Itoa(id))
	if secret != "" {
		hello.message = hello.message.With("secret", secret)
	}
	m, err := c.ask(ctx, hello)
	if err != nil {
		return err
	}
	if err := refused(hello, m); err != nil {
		return err
	}
	// Three messages follow, nobody having asked.
	for _, set := range []struct {
		name string
		to   *int
	}{{"size", &c.size}, {"rank", &c.rank}, {"debug", new(int)}} {
		c.owed = &request{message: wire.New("set", set.name, "?"), answer: "set"}
		if m, err = c.settle(ctx); err != nil {
			return err
		}
		if *set.to, err = m.Int(set.name); err != nil {
			return err
		}
	}
	return nil
}

// foreign is an error if a launcher has started this process that does not speak
// PMI, among others: each would be a job of its own.
func foreign(getenv func(string) string) error {
	if getenv("OMPI_COMM_WORLD_SIZE") == "1" || getenv("SLURM_STEP_NUM_TASKS") == "1" {
		return nil
	}
	for _, l := range []struct{ name, who, instead string }{
		{"OMPI_COMM_WORLD_RANK", "mpirun of Open MPI", "softrnic mpirun or mpiexec.hydra"},
		{"PMIX_RANK", "a launcher that speaks PMIx only", "softrnic mpirun, mpiexec.hydra or srun --mpi=pmi2"},
		{"SLURM_STEP_NUM_TASKS", "srun without a process manager", "srun --mpi=pmi2"},
	} {
		if value := getenv(l.name); value != "" {
			return &EnvironmentError{l.name, value, fmt.Sprintf("started by %s, with which ranks cannot find one another; use %s (or unset it for a job of one rank)", l.who, l.instead)}
		}
	}
	return nil
}
