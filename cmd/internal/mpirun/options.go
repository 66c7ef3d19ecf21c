package mpirun

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/internal/cpus"
)

// A Program is one program of a job. Several make the job MPMD.
type Program struct {
	N       int      // ranks; 0 is one for every slot of the hosts
	Args    []string // the program, or a Go package or .go file, and its arguments
	Dir     string   // to run in; empty is where mpirun was started
	Environ []string // NAME=VALUE
}

// Options describe a job: its programs, hosts, streams and limits.
type Options struct {
	Programs []Program
	Environ  []string // NAME=VALUE for all programs; one's own come after

	Hosts []Host // empty are those of Allocation, or this one
	PPN   int    // ranks for each host in turn, whatever its slots; 0 is its slots

	// Allocation is the batch system's, for which Hosts are not given; nil is none. More
	// ranks than it has are an error unless Oversubscribe is set.
	Allocation    *Allocation
	Oversubscribe bool

	// Launch is the command that starts another on a host: LAUNCH... HOST COMMAND. Nil
	// is the batch system's own, or ssh without questions; with one given, no host but
	// localhost is this one.
	Launch []string

	// LaunchTimeout is the time in which agents on all hosts have to answer; 0 is 30 s.
	LaunchTimeout time.Duration

	// Agent is the command of this program's agent: os.Executable mpirun --agent, for
	// example. Remote is the same on other hosts, if it is not at the same place.
	Agent, Remote []string

	Stdin          io.Reader // for rank 0; nil is nothing
	Stdout, Stderr io.Writer
	Terminal       bool // incomplete lines are written after partialLineDelay

	Prefix           bool   // "[3] " in front of each line of rank 3
	Outfile, Errfile string // patterns of files for the output: %r rank, %h host, %n node, %p program

	Timeout time.Duration // of the job; 0 is none
	Grace   time.Duration // between SIGTERM and SIGKILL

	Bind cpus.Binding // of ranks to the processors of their host; empty is cpus.Auto

	// Port has ranks connect by TCP on their host (PMI_PORT) instead of inheriting
	// a socket, as they do on systems without such.
	Port bool

	// Signals are the user's: those that are Forwarded are the ranks'. Of others the
	// first ends the job, the second at once.
	Signals <-chan os.Signal
}

// An OptionError reports an invalid option.
type OptionError struct{ Reason string }

// Error returns the reason.
func (e *OptionError) Error() string { return e.Reason }

func optionErrorf(format string, args ...any) error {
	return &OptionError{fmt.Sprintf(format, args...)}
}

// launchTimeout is the default of Options.LaunchTimeout.
const launchTimeout = 30 * time.Second

// maxRanks is the maximum number of ranks of a job.
const maxRanks = 1 << 16

// validate checks the options and sets defaults.
func (o *Options) validate() error {
	if len(o.Programs) == 0 {
		return optionErrorf("no program to run")
	}
	for _, p := range o.Programs {
		if len(p.Args) == 0 || p.Args[0] == "" {
			return optionErrorf("no program to run")
		}
		if p.N < 0 || p.N > maxRanks {
			return optionErrorf("%s is to run %d times: want 1 to %d", p.Args[0], p.N, maxRanks)
		}
		if err := checkEnviron(p.Environ); err != nil {
			return err
		}
	}
	if o.PPN < 0 || o.Timeout < 0 || o.Grace < 0 || o.LaunchTimeout < 0 {
		return optionErrorf("%d ranks for each host, %v for the job, %v to end and %v to start: none can be negative", o.PPN, o.Timeout, o.Grace, o.LaunchTimeout)
	}
	o.LaunchTimeout = cmp.Or(o.LaunchTimeout, launchTimeout)
	if len(o.Agent) == 0 || o.Stdout == nil || o.Stderr == nil {
		return errors.New("mpirun: Options.Agent, Stdout and Stderr must be set")
	}
	return checkEnviron(o.Environ)
}

func checkEnviron(list []string) error {
	for _, v := range list {
		name, _, ok := strings.Cut(v, "=")
		switch {
		case !ok || name == "" || strings.ContainsRune(v, 0):
			return optionErrorf("environment %q: want NAME=VALUE", v)
		case strings.HasPrefix(name, "PMI_"):
			return optionErrorf("%s is set by mpirun itself", name)
		}
	}
	return nil
}
