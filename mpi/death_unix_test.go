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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/softrnic/softrnic/mpi/pmi/server"
)

// process is a rank that runs.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Scanner
}

// processes starts the ranks of a job without a launcher, so that nobody ends those who
// are left when one dies.
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

// line is what a rank says next.
func (p *process) line() (string, error) {
	if !p.lines.Scan() {
		return "", errors.Join(errors.New("it says nothing any more"), p.lines.Err())
	}
	return p.lines.Text(), nil
}

// die runs a job in which the victim is killed, and returns what the others say of it.
func die(n int, role, net string) (said map[int]string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := processes(ctx, n, envRole+"="+role, "SOFTRNIC_MPI_NET="+net, "SOFTRNIC_MPI_COLL=bcast=chain", "SOFTRNIC_MPI_SHARED=on")
	defer func() {
		for _, p := range list {
			p.stdin.Close()
			_ = p.cmd.Wait()
		}
	}()
	if err != nil {
		return nil, err
	}
	for rank, p := range list {
		if text, err := p.line(); err != nil || text != "ready" {
			return nil, fmt.Errorf("rank %d says %q before it is ready: %w", rank, text, err)
		}
	}
	if err := list[victim].cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return nil, err
	}
	said = map[int]string{}
	for rank, p := range list {
		if rank == victim {
			continue
		}
		if said[rank], err = p.line(); err != nil {
			return said, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return said, nil
}

// A rank that is killed ends what the others wait for, whatever that is, with an error
// that names it, also at those who wait for others.
func TestDeath(t *testing.T) {
	var all sync.WaitGroup
	for _, net := range []string{"rdma", "ud", "tcp"} {
		for role, n := range map[string]int{"wait": 6, "poll": 5, "allreduce": 4, "shared": 4, "asleep": 5, "chain": 4} {
			if testing.Short() && net != "rdma" {
				continue
			}
			all.Go(func() {
				begin := time.Now()
				said, err := die(n, role, net)
				if err != nil {
					t.Errorf("%s, %s: %v; they say %v", role, net, err, said)
				}
				for rank, text := range said {
					if !strings.HasPrefix(text, "true ") || !strings.Contains(text, "the other rank is lost: rank 2: ") {
						t.Errorf("%s, %s: rank %d says %s", role, net, rank, text)
					}
				}
				t.Logf("%s, %s: %v\n%v", role, net, time.Since(begin), said)
			})
		}
	}
	all.Wait()
}
