package proc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cmd/internal/rankproc"
)

// A process is the parent's side of one worker.
type process struct {
	spec Spec
	rank int
	cmd  *exec.Cmd

	sendMu sync.Mutex // a call and the end of an exchange may be concurrent
	in     *os.File
	out    *os.File
	err    *os.File
	pmi    net.Conn // to the process manager, or nil
	tail   stderrTail

	replies chan json.RawMessage // capacity 1: one call at a time
	reaped  chan struct{}        // closed when the process is reaped
}

// launchProcess starts the worker's process on a set of processors, as a rank of a job if rank is
// not nil. Its output is read by watchUntilExit.
func launchProcess(exe string, spec Spec, index int, set []int, rank *rankproc.Rank) (*process, error) {
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("proc: start worker %s/%s: %w", spec.Name, spec.Role, err)
	}
	q, err := rankproc.Start(rankproc.Spec{
		Args: []string{exe, Command, spec.Name, spec.Role}, Environ: rankproc.RemovePMI(os.Environ()), Stdin: in, CPUs: set, Rank: rank,
	})
	if err != nil {
		stdin.Close()
		return nil, fmt.Errorf("proc: start worker %s/%s: %w", spec.Name, spec.Role, err)
	}
	return &process{
		spec: spec, rank: index, cmd: q.Cmd, in: stdin, out: q.Stdout, err: q.Stderr, pmi: q.PMI,
		replies: make(chan json.RawMessage, 1),
		reaped:  make(chan struct{}),
	}, nil
}

func (p *process) closeFiles() {
	for _, f := range []*os.File{p.in, p.out, p.err} {
		f.Close()
	}
	if p.pmi != nil {
		p.pmi.Close()
	}
}

// watchUntilExit copies the worker's stderr, passes its messages to handle, reaps it when it
// ends, and returns the reason as a non-nil error.
func (p *process) watchUntilExit(stderr io.Writer, handle func(*process, message) error) error {
	defer close(p.reaped)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		p.tail.copyLines(p.err, stderr, fmt.Sprintf("[%s/%s %d] ", p.spec.Name, p.spec.Role, p.rank))
	}()
	readErr := make(chan error, 1)
	go func() { readErr <- p.readMessages(handle) }()

	status := p.cmd.Wait()
	// Read the rest of the output, but not that of processes which the worker left behind.
	timer := time.AfterFunc(grace, p.closeFiles)
	msgErr := <-readErr
	<-copied
	if timer.Stop() {
		p.closeFiles()
	}
	switch {
	case msgErr != nil:
		return p.newWorkerError(msgErr)
	case status != nil:
		return p.newWorkerError(fmt.Errorf("%w: %w", ErrExited, status))
	default:
		return p.newWorkerError(ErrExited)
	}
}

// readMessages passes the worker's messages to handle until its stdout closes. It returns the
// error that the worker or handle reports, or nil.
func (p *process) readMessages(handle func(*process, message) error) error {
	dec := json.NewDecoder(bufio.NewReader(p.out))
	for {
		var m message
		if err := dec.Decode(&m); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) {
				return nil // the exit status has the reason
			}
			p.kill()
			return fmt.Errorf("malformed message on the control channel: %w", err)
		}
		if m.Kind == kindError {
			text, err := decodeData[string](m.Data)
			if err == nil {
				err = errors.New(text)
			}
			return err
		}
		if err := handle(p, m); err != nil {
			p.kill()
			return err
		}
	}
}

// sendMessage writes one message. An error means that the worker has exited or does not read;
// watchUntilExit reports it.
func (p *process) sendMessage(m message, timeout time.Duration) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	p.sendMu.Lock()
	defer p.sendMu.Unlock()
	// Pipes of some systems have no deadline. A worker always reads its stdin.
	_ = p.in.SetWriteDeadline(time.Now().Add(timeout))
	_, err = p.in.Write(append(b, '\n'))
	return err
}

// stopGracefully closes the worker's stdin, kills the worker after the grace period, and
// returns when it is reaped.
func (p *process) stopGracefully() {
	p.in.Close()
	timer := time.AfterFunc(grace, p.kill)
	defer timer.Stop()
	<-p.reaped
}

// kill ends the worker at once, through its process handle.
func (p *process) kill() { _ = p.cmd.Process.Kill() } // fails only if the process has ended

func (p *process) newWorkerError(err error) error {
	return &WorkerError{
		Name: p.spec.Name, Role: p.spec.Role, Rank: p.rank,
		PID: p.cmd.Process.Pid, Err: err, Stderr: p.tail.String(),
	}
}
