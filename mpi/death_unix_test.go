//go:build unix

package mpi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/pmi/server"
)

// process is a running rank.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Scanner
}

// processes starts the ranks of a job without a launcher, which would end the other ranks when one
// is killed.
func processes(ctx context.Context, n int, environ ...string) (list []*process, err error) {
	id := make([]byte, 0, 16)
	id = strconv.AppendInt(append(id, "death-"...), time.Now().UnixNano(), 36)
	job, err := server.New(server.Options{Size: n, ID: string(id)})
	if err != nil {
		return nil, err
	}
	for rank := range n {
		ours, theirs, err := server.Pair()
		if err != nil {
			return list, err
		}
		go func() { _ = job.Serve(rank, ours) }()
		p := &process{cmd: exec.CommandContext(ctx, os.Args[0])}
		p.cmd.Env = append(append(os.Environ(), "PMI_FD=3", "PMI_RANK="+strconv.Itoa(rank), "PMI_SIZE="+strconv.Itoa(n)), environ...)
		p.cmd.ExtraFiles = []*os.File{theirs}
		p.cmd.Stderr = os.Stderr
		p.stdin, _ = p.cmd.StdinPipe()
		out, _ := p.cmd.StdoutPipe()
		p.lines = bufio.NewScanner(out)
		err = p.cmd.Start()
		theirs.Close()
		if err != nil {
			return list, err
		}
		list = append(list, p)
	}
	return list, nil
}

// line returns the next line of a rank's output.
func (p *process) line() (string, error) {
	if !p.lines.Scan() {
		return "", errors.Join(errors.New("it says nothing any more"), p.lines.Err())
	}
	return p.lines.Text(), nil
}

// fate is a killed or stopped rank with the errors of the others.
type fate struct {
	said map[int]string
	pid  int
	took time.Duration // until all have reported
}

// killVictim runs a job in which a signal kills or stops the victim.
func killVictim(n int, role, net string, sig syscall.Signal, environ ...string) (f fate, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := processes(ctx, n, append(environ, envRole+"="+role, "SOFTRNIC_MPI_NET="+net, "SOFTRNIC_MPI_RC_LIMIT=1", "SOFTRNIC_MPI_COLL=bcast=chain", "SOFTRNIC_MPI_SHARED=on")...)
	defer func() {
		for rank, p := range list {
			if p.stdin.Close(); rank == victim {
				_ = p.cmd.Process.Kill()
			}
			_ = p.cmd.Wait()
		}
	}()
	if err != nil {
		return f, err
	}
	for rank, p := range list {
		if text, err := p.line(); err != nil || text != "ready" {
			return f, fmt.Errorf("rank %d says %q before it is ready: %w", rank, text, err)
		}
	}
	begin := time.Now()
	if err := list[victim].cmd.Process.Signal(sig); err != nil {
		return f, err
	}
	f = fate{said: map[int]string{}, pid: list[victim].cmd.Process.Pid}
	for rank, p := range list {
		if rank == victim {
			continue
		}
		if f.said[rank], err = p.line(); err != nil {
			return f, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	f.took = time.Since(begin)
	return f, nil
}

// names checks that the errors of all ranks name the victim, its host and its process.
func (f fate) names(t *testing.T, role, net string) {
	want := regexp.MustCompile(fmt.Sprintf(`^true .*rank %d \([^ ]+, pid %d\) is lost: `, victim, f.pid))
	for rank, text := range f.said {
		if !want.MatchString(text) {
			t.Errorf("%s, %s: rank %d says %s", role, net, rank, text)
		}
	}
	t.Logf("%s, %s: %v\n%v", role, net, f.took, f.said)
}

// TestDeath checks that the waits of all other ranks end with an error that names the killed
// rank, also those for ranks that wait for it.
func TestDeath(t *testing.T) {
	var all sync.WaitGroup
	for _, net := range []string{"rdma", "ud", "tcp"} {
		for role, n := range map[string]int{"wait": 6, "poll": 5, "allreduce": 4, "shared": 4, "parts": 4, "asleep": 5, "chain": 4} {
			if testing.Short() && net != "rdma" {
				continue
			}
			all.Go(func() {
				f, err := killVictim(n, role, net, syscall.SIGKILL)
				if err != nil {
					t.Errorf("%s, %s: %v; they say %v", role, net, err, f.said)
				}
				f.names(t, role, net)
			})
		}
	}
	all.Wait()
}

// slack is the time that a loaded machine may add to a documented time.
const slack = 3 * time.Second

// TestStopped checks on every net that a stopped rank is reported as lost after Options.GiveUp, and
// not before half of it: it may only wait for a processor.
func TestStopped(t *testing.T) {
	giveUp, environ := 10*time.Second, []string{envPatient + "=1"}
	if testing.Short() {
		giveUp, environ = 3*time.Second, append(environ, "SOFTRNIC_MPI_GIVE_UP=3s")
	}
	var all sync.WaitGroup
	for _, net := range []string{"rdma", "ud", "tcp", "hybrid"} {
		for _, role := range []string{"allreduce", "asleep", "chain"} {
			all.Go(func() {
				f, err := killVictim(3, role, net, syscall.SIGSTOP, environ...)
				if err != nil {
					t.Errorf("%s, %s: %v; they say %v", role, net, err, f.said)
					return
				}
				f.names(t, role, net)
				if f.took > giveUp+slack || f.took < giveUp/3 {
					t.Errorf("%s, %s: it took %v, not %v", role, net, f.took, giveUp)
				}
			})
		}
	}
	all.Wait()
}
