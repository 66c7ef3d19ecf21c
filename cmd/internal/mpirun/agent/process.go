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
	"github.com/softrnic/softrnic/internal/pmi/server"
	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// A process is a rank on this host.
type process struct {
	*agent
	rank   int
	local  int          // its number among those here
	pipes  []io.Closer  // ends of ours of its output
	input  *os.File     // its standard input until it is started; nil is nothing
	stdin  *asyncWriter // the other end
	failed error        // before it is started

	mu        sync.Mutex
	pmi       *asyncWriter  // its connection to the manager
	pmiDone   chan struct{} // closed when nothing comes from there any more
	osProcess *os.Process   // nil before it is started
	ended     bool
}

// newProcess returns a rank that is not started yet.
func newProcess(a *agent, r frame.Rank, local int) *process {
	p := &process{agent: a, rank: r.Rank, local: local}
	if r.Stdin {
		var write *os.File
		if p.input, write, p.failed = os.Pipe(); p.failed == nil {
			p.stdin = newAsyncWriter(write, func(n int) {
				_ = p.out.Write(frame.Credit, p.rank, []byte(strconv.Itoa(n)))
			})
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
func (p *process) startProgram(r frame.Rank) (_ *exec.Cmd, err error) {
	var theirs []*os.File // ends of the rank
	if p.input != nil {
		theirs = append(theirs, p.input)
	}
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	if len(r.Args) == 0 {
		return nil, errors.New("no program")
	}
	if p.failed != nil {
		return nil, p.failed
	}
	if r.Dir != "" {
		if at, err := os.Stat(r.Dir); err != nil || !at.IsDir() {
			return nil, fmt.Errorf("working directory %s does not exist", r.Dir)
		}
	}
	cmd := exec.Command(r.Args[0], r.Args[1:]...)
	cmd.Dir = r.Dir
	cmd.Env = p.buildEnviron(r)
	if p.input != nil {
		cmd.Stdin = p.input
	}
	var outputs []*os.File
	for _, kind := range []frame.Kind{frame.Stdout, frame.Stderr} {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		theirs, outputs = append(theirs, write), append(outputs, write)
		p.pipes = append(p.pipes, read)
		p.output.Go(func() { p.forwardOutput(kind, read) })
	}
	cmd.Stdout, cmd.Stderr = outputs[0], outputs[1]
	switch {
	case p.port != nil:
		cmd.Env = append(cmd.Env, "PMI_PORT="+p.port.Addr(), "PMI_ID="+strconv.Itoa(r.Rank), wire.EnvSecret+"="+p.spec.Secret)
	case p.spec.Secret == "":
		ours, fd, err := server.Pair()
		if err != nil {
			return nil, err
		}
		theirs = append(theirs, fd)
		cmd.ExtraFiles = []*os.File{fd}
		cmd.Env = append(cmd.Env, "PMI_FD=3")
		p.attachPMI(ours)
	default:
		return nil, errors.New("no port for the process manager")
	}
	return cmd, cpus.RunOn(cpus.SetOf(p.cpuSets, p.local), func() error { return p.processes.startRank(cmd) })
}

// buildEnviron returns the agent's environment without the PMI variables of another job, followed
// by the variables of the Spec and of the job's process manager.
func (p *process) buildEnviron(r frame.Rank) []string {
	var list []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PMI_") && !strings.HasPrefix(v, wire.EnvSecret+"=") {
			list = append(list, v)
		}
	}
	list = append(list, p.spec.Environ...)
	list = append(list, r.Environ...)
	if addr := p.addressFor(list); addr != "" {
		list = append(list, envAddr+"="+addr)
	}
	return append(list,
		"PMI_RANK="+strconv.Itoa(r.Rank), "PMI_SIZE="+strconv.Itoa(p.spec.Size),
		// As hydra has them; programs choose a device by them.
		"MPI_LOCALRANKID="+strconv.Itoa(p.local), "MPI_LOCALNRANKS="+strconv.Itoa(len(p.spec.Ranks)))
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
	p.pmi = newAsyncWriter(c, nil)
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
		to.closeAfterFlush()
	default:
		to.enqueue(b)
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
		p.stdin.closeNow()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.pmi != nil {
		p.pmi.closeNow()
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
