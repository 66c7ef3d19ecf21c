package mpirun

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/mpirun/frame"
	"github.com/softrnic/softrnic/internal/pmi/server"
)

// event is something that the loop has to know.
type event struct {
	started *frame.Process
	failed  *frame.Failure
	exited  *frame.Exit
	job     *server.Event
	arrived *frame.Arrival
	lost    error // how a link was lost; its end is said as well
	greeted bool  // after the agent's hello
	isEnd   bool  // of a link

	rank int
	link *link
}

// link is an agent on a host.
type link struct {
	*run
	host    string
	cmd     *exec.Cmd
	out     *frame.Queue
	arrival *frame.Arrival // nil until the agent has said where it is; the loop's
	started bool           // the agent knows what to run; the loop's

	sessions map[int]*server.Session // of ranks that speak PMI; the reader's
	stdin    *credit
}

// link starts the agent of a host.
func (r *run) link(host string) (*link, error) {
	k := &link{run: r, host: host, cmd: r.agentCommand(host), sessions: map[int]*server.Session{}, stdin: newCredit()}
	apart(k.cmd)
	k.cmd.WaitDelay = afterwards
	in, err := k.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	prefix := ""
	if !r.here(host) {
		prefix = host + ": "
	}
	said := newStream(r.stderr, prefix, false)
	k.cmd.Stderr = said
	if err := k.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", host, err)
	}
	k.out = frame.NewQueue(in)
	go k.serve(out, said)
	return k, nil
}

// end has the agent end its ranks. One that has not been told what to run is ended by
// the end of its input, and the command that should start it is killed.
func (k *link) end(grace time.Duration) {
	if k.started {
		_ = k.out.SendJSON(frame.End, 0, frame.Ending{GraceMillis: int(grace.Milliseconds())})
		return
	}
	k.out.Close()
	if k.arrival == nil {
		_ = k.cmd.Process.Kill()
	}
}

// afterwards is how long an agent's command may take to end, and what holds its
// output to let go, when the agent says no more.
const afterwards = time.Second

// serve serves an agent until it and the command that has started it have ended.
func (k *link) serve(out io.ReadCloser, said *stream) {
	greeted, lost := k.listen(frame.NewReader(out), said)
	out.Close() // who still writes has nobody who reads
	k.out.Close()
	k.stdin.close()
	ended := make(chan error, 1)
	go func() { ended <- k.cmd.Wait() }()
	wait := time.NewTimer(afterwards)
	defer wait.Stop()
	var err error
	select {
	case err = <-ended:
		ended <- err
	case <-wait.C:
	}
	if lost != nil {
		if err != nil {
			lost = fmt.Errorf("%w (%s: %w)", lost, filepath.Base(k.cmd.Path), err)
		}
		k.say(event{lost: lost, greeted: greeted, link: k})
	}
	<-ended
	_ = said.close()
	k.say(event{isEnd: true, link: k})
}

// listen does with what the agent says what has to be done, until its farewell.
func (k *link) listen(frames *frame.Reader, noise io.Writer) (greeted bool, err error) {
	if err := frames.Greet(noise); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("no agent of softrnic mpirun answers there")
		}
		return false, err
	}
	for {
		kind, rank, b, err := frames.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("its agent has ended")
			}
			return true, err
		}
		if kind != frame.Arrived && kind != frame.Note && kind != frame.Bye && (rank < 0 || rank >= len(k.seats) || k.nodes[k.seats[rank].node] != k.host) {
			return true, fmt.Errorf("its agent speaks of rank %d, which is not there", rank)
		}
		bye, err := k.take(kind, rank, b)
		if err != nil || bye {
			return true, err
		}
	}
}

// take does with one frame what has to be done.
func (k *link) take(kind frame.Kind, rank int, b []byte) (bye bool, err error) {
	e := event{rank: rank, link: k}
	switch kind {
	case frame.Stdout:
		_, err := k.streams[rank][0].Write(b)
		k.wrote(err)
	case frame.Stderr:
		_, err := k.streams[rank][1].Write(b)
		k.wrote(err)
	case frame.PMI:
		k.pmi(rank, b)
	case frame.Credit:
		n, err := strconv.Atoi(string(b))
		if err != nil {
			return false, err
		}
		k.stdin.give(n)
	case frame.Note:
		k.note("%s: %s", k.host, bytes.TrimSpace(b))
	case frame.Arrived:
		e.arrived = new(frame.Arrival)
		err = json.Unmarshal(b, e.arrived)
	case frame.Started:
		e.started = new(frame.Process)
		err = json.Unmarshal(b, e.started)
	case frame.Failed:
		e.failed = new(frame.Failure)
		err = json.Unmarshal(b, e.failed)
	case frame.Exited:
		e.exited = new(frame.Exit)
		err = json.Unmarshal(b, e.exited)
	case frame.Bye:
		var f frame.Farewell
		if err := json.Unmarshal(b, &f); err != nil {
			return false, err
		}
		if f.Refused > 0 {
			k.note("%s: %d connections that are no ranks' were refused", k.host, f.Refused)
		}
		return true, nil
	default:
		err = fmt.Errorf("its agent says %q, which is not understood", kind)
	}
	if err == nil && (e.arrived != nil || e.started != nil || e.failed != nil || e.exited != nil) {
		k.say(e)
	}
	return false, err
}

// pmi is what a rank says to its process manager.
func (k *link) pmi(rank int, b []byte) {
	s := k.sessions[rank]
	if s == nil {
		var err error
		s, err = k.job.Attach(rank, func(b []byte) { k.out.Send(frame.PMI, rank, b) })
		if err != nil { // an agent's mistake
			k.note("%v", err)
			return
		}
		k.sessions[rank] = s
	}
	if len(b) == 0 {
		return
	}
	if err := s.Feed(b); err != nil && !k.refused[rank] {
		k.refused[rank] = true
		k.note("%v: its connection to the process manager is closed", err)
		k.out.Send(frame.PMI, rank, nil)
	}
}

// window is how much input is on its way to a rank that has not read it.
const window = 256 << 10

// credit is what may still be sent.
type credit struct {
	mu     sync.Mutex
	change sync.Cond
	left   int
	closed bool
}

func newCredit() *credit {
	c := &credit{left: window}
	c.change.L = &c.mu
	return c
}

func (c *credit) give(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = min(c.left+max(n, 0), window)
	c.change.Broadcast()
}

func (c *credit) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.change.Broadcast()
}

// take waits until there is credit for n bytes. False is that nobody takes any.
func (c *credit) take(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.left < n && !c.closed {
		c.change.Wait()
	}
	c.left -= n
	return !c.closed
}
