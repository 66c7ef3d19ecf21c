package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cmd/internal/cpus"
	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
	"github.com/softrnic/softrnic/cmd/internal/rankproc"
	"github.com/softrnic/softrnic/internal/sendqueue"
)

// maxQueued is the maximum number of bytes queued for a rank that does not read. The launcher
// stays below it: it sends input by credit, and PMI replies on request.
const maxQueued = 1 << 20

// A process is a rank on this host.
type process struct {
	*agent
	rank   int
	local  int              // its number among those here
	pipes  []io.Closer      // ends of ours of its output
	input  *os.File         // its standard input until it is started; nil is nothing
	stdin  *sendqueue.Queue // the other end
	failed error            // before it is started

	mu        sync.Mutex
	pmi       *sendqueue.Queue // its connection to the manager
	pmiDone   chan struct{}    // closed when nothing comes from there any more
	osProcess *os.Process      // nil before it is started
	ended     bool
}

// newProcess returns a rank that is not started yet.
func newProcess(a *agent, r frame.Rank, local int) *process {
	p := &process{agent: a, rank: r.Rank, local: local}
	if r.Stdin {
		var write *os.File
		if p.input, write, p.failed = os.Pipe(); p.failed == nil {
			p.stdin = sendqueue.New(write, sendqueue.Options{Limit: maxQueued, Written: func(n int) {
				_ = p.out.Write(frame.Credit, p.rank, []byte(strconv.Itoa(n)))
			}})
		}
	}
	return p
}

// startRank starts the rank and reports the outcome to the launcher.
func (p *process) startRank(r frame.Rank) {
	cmd, err := p.startProgram(r)
	if err != nil {
		p.closeInputs()
		_ = p.out.WriteJSON(frame.Failed, r.Rank, frame.Failure{Why: startFailureText(r, err), Status: startFailureStatus(err)})
		return
	}
	p.mu.Lock()
	p.osProcess = cmd.Process
	p.mu.Unlock()
	_ = p.out.WriteJSON(frame.Started, r.Rank, frame.Process{PID: cmd.Process.Pid})
	p.running.Go(func() { p.waitExit(cmd) })
}

// startProgram starts the program with its streams, its PMI connection and its processors.
func (p *process) startProgram(r frame.Rank) (*exec.Cmd, error) {
	if p.failed == nil && p.port == nil && p.spec.Secret != "" {
		p.failed = errors.New("no port for the process manager")
	}
	if p.failed != nil {
		p.input.Close() // closing nil is safe
		return nil, p.failed
	}
	q, err := rankproc.Start(rankproc.Spec{
		Args: r.Args, Dir: r.Dir, Environ: p.buildEnviron(r), Stdin: p.input, CPUs: cpus.SetOf(p.cpuSets, p.local), Start: p.processes.startRank,
		Rank: &rankproc.Rank{Rank: r.Rank, Size: p.spec.Size, Local: p.local, Count: len(p.spec.Ranks), Port: p.port},
	})
	if err != nil {
		return nil, err
	}
	p.pipes = []io.Closer{q.Stdout, q.Stderr}
	p.output.Go(func() { p.forwardOutput(frame.Stdout, q.Stdout) })
	p.output.Go(func() { p.forwardOutput(frame.Stderr, q.Stderr) })
	if q.PMI != nil {
		p.attachPMI(q.PMI)
	}
	return q.Cmd, nil
}

// buildEnviron returns the agent's environment without the PMI variables of another job, followed
// by the variables of the Spec.
func (p *process) buildEnviron(r frame.Rank) []string {
	list := append(rankproc.RemovePMI(os.Environ()), p.spec.Environ...)
	list = append(list, r.Environ...)
	if addr := p.addressFor(list); addr != "" {
		list = append(list, envAddr+"="+addr)
	}
	return list
}

// forwardOutput sends the rank's output to the launcher in frames of a kind.
func (p *process) forwardOutput(kind frame.Kind, from io.ReadCloser) {
	defer from.Close()
	b := make([]byte, frame.Chunk)
	for {
		n, err := from.Read(b)
		if n > 0 && p.out.Write(kind, p.rank, b[:n]) != nil || err != nil {
			return
		}
	}
}

// attachPMI takes over the rank's connection to the process manager.
func (p *process) attachPMI(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.pmi != nil {
		c.Close()
		return
	}
	p.pmi = sendqueue.New(c, sendqueue.Options{Limit: maxQueued})
	p.pmiDone = make(chan struct{})
	done := p.pmiDone
	p.output.Go(func() {
		defer close(done)
		p.forwardOutput(frame.PMI, c)
		_ = p.out.Write(frame.PMI, p.rank, nil)
	})
}

// deliver queues bytes from the launcher for the rank's stdin or PMI connection; no bytes close
// it.
func (p *process) deliver(kind frame.Kind, b []byte) {
	to := p.stdin
	if kind == frame.PMI {
		p.mu.Lock()
		to = p.pmi
		p.mu.Unlock()
	}
	switch {
	case to == nil:
	case len(b) == 0:
		to.CloseAfterFlush()
	default:
		to.Append(b)
	}
}

// sendSignal sends the rank a signal if it runs.
func (p *process) sendSignal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.osProcess != nil && !p.ended {
		_ = p.osProcess.Signal(s) // it may have ended just now
	}
}

// pmiDrainTimeout bounds the wait for the end of the PMI connection after the exit of a rank. It
// expires only if a process that the rank has left holds the connection.
const pmiDrainTimeout = 100 * time.Millisecond

// waitExit waits for the rank's exit and reports it.
func (p *process) waitExit(cmd *exec.Cmd) {
	err := cmd.Wait()
	p.processes.removeRank(cmd)
	p.mu.Lock()
	p.ended = true
	done := p.pmiDone
	p.mu.Unlock()
	if done != nil { // an abort is to be known before the exit
		select {
		case <-done:
		case <-time.After(pmiDrainTimeout):
		}
	}
	exit := exitInfo(cmd.ProcessState)
	if cmd.ProcessState == nil {
		exit = frame.Exit{Status: 1, Name: err.Error()}
	}
	_ = p.out.WriteJSON(frame.Exited, p.rank, exit)
}

// outputDrainTimeout bounds the wait for remaining output after the last process has ended.
const outputDrainTimeout = time.Second

// closeInputs closes the rank's streams. A process that could not be killed may hold them.
func (p *process) closeInputs() {
	if p.stdin != nil {
		p.stdin.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.pmi != nil {
		p.pmi.Close()
	}
	time.AfterFunc(outputDrainTimeout, func() {
		for _, c := range p.pipes {
			c.Close()
		}
	})
}

// startFailureText returns the reason why a rank could not be started.
func startFailureText(r frame.Rank, err error) string {
	text := err.Error()
	if errors.Is(err, exec.ErrNotFound) && !strings.ContainsRune(r.Args[0], os.PathSeparator) {
		if _, err := os.Stat(filepath.Join(r.Dir, r.Args[0])); err == nil {
			text += fmt.Sprintf("; there is ./%s in the working directory", r.Args[0])
		}
	}
	return text
}

// startFailureStatus returns the exit status that a shell reports for a command that fails to
// start.
func startFailureStatus(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}
