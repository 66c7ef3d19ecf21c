package proc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/cpus"
)

// process is the parent's end of one worker.
type process struct {
	spec Spec
	rank int
	cmd  *exec.Cmd

	sendMu sync.Mutex // a call and the end of an exchange may coincide
	in     *os.File
	out    *os.File
	err    *os.File
	tail   stderrTail

	replies chan json.RawMessage // capacity 1: one call at a time
	reaped  chan struct{}        // closed when the process is reaped
}

// launchProcess starts the worker's process on a set of processors. Nothing is read from it
// until watch.
func launchProcess(exe string, spec Spec, rank int, set []int) (*process, error) {
	p := &process{
		spec: spec, rank: rank, cmd: exec.Command(exe, Command, spec.Name, spec.Role),
		replies: make(chan json.RawMessage, 1),
		reaped:  make(chan struct{}),
	}
	// The parent's ends are files of its own, so that Wait reaps the worker at
	// once even if something it started holds the other ends open.
	inR, inW, err1 := os.Pipe()
	outR, outW, err2 := os.Pipe()
	errR, errW, err3 := os.Pipe()
	err := errors.Join(err1, err2, err3)
	if err == nil {
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = inR, outW, errW
		err = cpus.On(set, p.cmd.Start)
	}
	for _, f := range []*os.File{inR, outW, errW} {
		f.Close() // the worker has its own; closing nil is harmless
	}
	p.in, p.out, p.err = inW, outR, errR
	if err != nil {
		p.closeFiles()
		return nil, fmt.Errorf("proc: cannot start worker %s/%s: %w", spec.Name, spec.Role, err)
	}
	return p, nil
}

func (p *process) closeFiles() {
	for _, f := range []*os.File{p.in, p.out, p.err} {
		f.Close()
	}
}

// watchUntilExit copies the worker's stderr, gives its messages to handle, reaps it when
// it ends and returns why it did. That is an error always: a worker does not
// leave of its own accord.
func (p *process) watchUntilExit(stderr io.Writer, handle func(*process, message) error) error {
	defer close(p.reaped)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		p.tail.copyLines(p.err, stderr, fmt.Sprintf("[%s/%s %d] ", p.spec.Name, p.spec.Role, p.rank))
	}()
	heard := make(chan error, 1)
	go func() { heard <- p.readMessages(handle) }()

	status := p.cmd.Wait()
	// What it still said is read to the end, except from what it started and
	// left behind.
	late := time.AfterFunc(grace, p.closeFiles)
	said := <-heard
	<-copied
	if late.Stop() {
		p.closeFiles()
	}
	switch {
	case said != nil:
		return p.newWorkerError(said)
	case status != nil:
		return p.newWorkerError(fmt.Errorf("%w: %w", ErrExited, status))
	default:
		return p.newWorkerError(ErrExited)
	}
}

// readMessages hands the worker's messages to handle until its stdout closes. It
// returns what went wrong by the worker's own words or by handle's, or nil.
func (p *process) readMessages(handle func(*process, message) error) error {
	dec := json.NewDecoder(bufio.NewReader(p.out))
	for {
		var m message
		if err := dec.Decode(&m); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) {
				return nil // how it ended is in the exit status
			}
			p.kill()
			return fmt.Errorf("its control channel carries something else: %w", err)
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

// sendMessage writes one message. An error is for watch to explain: the worker is gone
// or does not read.
func (p *process) sendMessage(m message, timeout time.Duration) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	p.sendMu.Lock()
	defer p.sendMu.Unlock()
	// Some systems' pipes know no deadline; a worker always reads its stdin.
	_ = p.in.SetWriteDeadline(time.Now().Add(timeout))
	_, err = p.in.Write(append(b, '\n'))
	return err
}

// stopGracefully ends the worker: politely, by closing its stdin, and after the grace
// period by force. It returns when the process is reaped.
func (p *process) stopGracefully() {
	p.in.Close()
	late := time.AfterFunc(grace, p.kill)
	defer late.Stop()
	<-p.reaped
}

// kill ends the worker at once, through its own handle.
func (p *process) kill() { _ = p.cmd.Process.Kill() } // fails only if it has ended already

func (p *process) newWorkerError(err error) error {
	return &WorkerError{
		Name: p.spec.Name, Role: p.spec.Role, Rank: p.rank,
		PID: p.cmd.Process.Pid, Err: err, Stderr: p.tail.String(),
	}
}
