// Package rankproc starts the process of a rank or of a worker on this host: with pipes
// for its output, a connection to the process manager and a set of processors. The
// agents of softrnic mpirun and the workers of bench are started by it.
//
//	p, err := rankproc.Start(rankproc.Spec{
//		Args: []string{"heat", "-n", "1000"}, Environ: rankproc.RemovePMI(os.Environ()),
//		Rank: &rankproc.Rank{Rank: 3, Size: 8},
//	})
//	go job.Serve(3, p.PMI)
//	go io.Copy(os.Stdout, p.Stdout)
//	err = p.Cmd.Wait()
package rankproc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cmd/internal/cpus"
	"github.com/softrnic/softrnic/internal/pmi/server"
	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// A Spec describes a process to start.
type Spec struct {
	Args    []string
	Dir     string   // "" is the current one
	Environ []string // see RemovePMI
	Stdin   *os.File // end of the process; Start closes it. Nil is no input
	CPUs    []int    // processors to run on; nil is all
	Rank    *Rank    // nil is a process that joins no job

	Start func(*exec.Cmd) error // nil is (*exec.Cmd).Start
}

// A Rank is the place of a process in a job.
type Rank struct {
	Rank, Size   int
	Local, Count int          // number among the ranks on this host, and the number of these
	Port         *server.Port // to which the process connects; nil is an inherited socket
}

// A Process is a started process. The caller closes the streams and waits for Cmd.
//
// The pipes belong to the Process instead of the exec.Cmd, so that Wait returns when the
// process ends, even if a process that it started keeps the other ends open.
type Process struct {
	Cmd            *exec.Cmd
	Stdout, Stderr *os.File
	PMI            net.Conn // for server.Job.Serve; nil without a Rank, or with a Port
}

// Start starts a process.
func Start(s Spec) (_ *Process, err error) {
	p := &Process{}
	theirs := []*os.File{s.Stdin} // ends of the process
	defer func() {
		for _, f := range theirs {
			f.Close() // closing nil is safe
		}
		if err != nil {
			p.closeStreams()
		}
	}()
	if len(s.Args) == 0 {
		return nil, errors.New("no program")
	}
	if s.Dir != "" {
		if at, err := os.Stat(s.Dir); err != nil || !at.IsDir() {
			return nil, fmt.Errorf("working directory %s does not exist", s.Dir)
		}
	}
	cmd := exec.Command(s.Args[0], s.Args[1:]...)
	cmd.Dir, cmd.Env = s.Dir, s.Environ
	if s.Stdin != nil {
		cmd.Stdin = s.Stdin
	}
	p.Cmd = cmd
	stdout, out, err1 := os.Pipe()
	stderr, errOut, err2 := os.Pipe()
	theirs = append(theirs, out, errOut)
	p.Stdout, p.Stderr, cmd.Stdout, cmd.Stderr = stdout, stderr, out, errOut
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if r := s.Rank; r != nil {
		cmd.Env = append(cmd.Env, "PMI_RANK="+strconv.Itoa(r.Rank), "PMI_SIZE="+strconv.Itoa(r.Size),
			// As hydra has them; programs choose a device by them.
			"MPI_LOCALRANKID="+strconv.Itoa(r.Local), "MPI_LOCALNRANKS="+strconv.Itoa(r.Count))
		if r.Port != nil {
			cmd.Env = append(cmd.Env, "PMI_PORT="+r.Port.Addr(), "PMI_ID="+strconv.Itoa(r.Rank), wire.EnvSecret+"="+r.Port.Secret)
		} else {
			var fd *os.File
			if p.PMI, fd, err = server.Pair(); err != nil {
				return nil, err
			}
			theirs = append(theirs, fd)
			cmd.ExtraFiles = []*os.File{fd}
			cmd.Env = append(cmd.Env, "PMI_FD=3")
		}
	}
	start := s.Start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	return p, cpus.RunOn(s.CPUs, func() error { return start(cmd) })
}

func (p *Process) closeStreams() {
	p.Stdout.Close()
	p.Stderr.Close()
	if p.PMI != nil {
		p.PMI.Close()
	}
}

// RemovePMI returns an environment without the variables of the process manager that started this
// process.
func RemovePMI(environ []string) (list []string) {
	for _, v := range environ {
		if !strings.HasPrefix(v, "PMI_") && !strings.HasPrefix(v, wire.EnvSecret+"=") {
			list = append(list, v)
		}
	}
	return list
}
