package mpirun

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
	"github.com/softrnic/softrnic/internal/pmi/server"
)

// An event is an input of the job's loop: exactly one of the first fields is set.
type event struct {
	started   *frame.Process
	failed    *frame.Failure
	exited    *frame.Exit
	job       *server.Event
	arrived   *frame.HostInfo
	linkErr   error // how a link was lost; its end is said as well
	sawHello  bool  // after the agent's hello
	linkEnded bool  // of a link

	rank int
	link *agentLink
}

// An agentLink is the launcher's connection to the agent of one host.
type agentLink struct {
	*job
	host    string
	cmd     *exec.Cmd
	out     *frame.Queue
	arrival *frame.HostInfo // nil until it is received; owned by the loop
	started bool            // the Spec was sent; owned by the loop

	sessions map[int]*server.Session // of ranks that use PMI; owned by the reader
	stdin    *stdinCredit
}

// startAgent starts the agent of a host and the goroutine that serves it.
func (r *job) startAgent(host string) (*agentLink, error) {
	k := &agentLink{job: r, host: host, cmd: r.agentCommand(host), sessions: map[int]*server.Session{}, stdin: newStdinCredit()}
	newSession(k.cmd)
	k.cmd.WaitDelay = agentWaitDelay
	in, err := k.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	prefix := ""
	if !r.isLocal(host) {
		prefix = host + ": "
	}
	output := newRankStream(r.stderr, prefix, false)
	k.cmd.Stderr = output
	if err := k.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", host, err)
	}
	k.out = frame.NewQueue(in)
	go k.serveAgent(out, output)
	return k, nil
}

// stop makes the agent terminate its ranks. An agent without a Spec ends with its input, and the
// command that has not reached it yet is killed.
func (k *agentLink) stop(grace time.Duration) {
	if k.started {
		_ = k.out.SendJSON(frame.Stop, 0, frame.StopRequest{GraceMillis: int(grace.Milliseconds())})
		return
	}
	k.out.Close()
	if k.arrival == nil {
		_ = k.cmd.Process.Kill()
	}
}

// agentWaitDelay bounds the time between the last frame of an agent and the exit of its command,
// and the time until processes that inherited its output close it.
const agentWaitDelay = time.Second

// serveAgent handles the frames of an agent until the agent and its command have ended.
func (k *agentLink) serveAgent(out io.ReadCloser, output *rankStream) {
	greeted, lost := k.readFrames(frame.NewReader(out), output)
	out.Close() // a process that still writes gets SIGPIPE
	k.out.Close()
	k.stdin.close()
	ended := make(chan error, 1)
	go func() { ended <- k.cmd.Wait() }()
	wait := time.NewTimer(agentWaitDelay)
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
		k.sendEvent(event{linkErr: lost, sawHello: greeted, link: k})
	}
	<-ended
	_ = output.close()
	k.sendEvent(event{linkEnded: true, link: k})
}

// readFrames handles the agent's frames until its Summary. It reports whether Hello was received.
func (k *agentLink) readFrames(frames *frame.Reader, noise io.Writer) (greeted bool, err error) {
	if err := frames.ReadHello(noise); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("no reply from an agent of softrnic mpirun")
		}
		return false, err
	}
	for {
		kind, rank, b, err := frames.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("agent has ended")
			}
			return true, err
		}
		if kind != frame.HostReady && kind != frame.Note && kind != frame.Finished && (rank < 0 || rank >= len(k.placements) || k.nodes[k.placements[rank].node] != k.host) {
			return true, fmt.Errorf("agent: rank %d is not on this host", rank)
		}
		bye, err := k.handleFrame(kind, rank, b)
		if err != nil || bye {
			return true, err
		}
	}
}

// handleFrame handles one frame and reports whether it was the last.
func (k *agentLink) handleFrame(kind frame.Kind, rank int, b []byte) (bye bool, err error) {
	e := event{rank: rank, link: k}
	switch kind {
	case frame.Stdout:
		_, err := k.streams[rank][0].Write(b)
		k.noteWriteError(err)
	case frame.Stderr:
		_, err := k.streams[rank][1].Write(b)
		k.noteWriteError(err)
	case frame.PMI:
		k.handlePMI(rank, b)
	case frame.Credit:
		n, err := strconv.Atoi(string(b))
		if err != nil {
			return false, err
		}
		k.stdin.grant(n)
	case frame.Note:
		k.notef("%s: %s", k.host, bytes.TrimSpace(b))
	case frame.HostReady:
		e.arrived = new(frame.HostInfo)
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
	case frame.Finished:
		var f frame.Summary
		if err := json.Unmarshal(b, &f); err != nil {
			return false, err
		}
		if f.Refused > 0 {
			k.notef("%s: %d connections rejected that are not from ranks", k.host, f.Refused)
		}
		return true, nil
	default:
		err = fmt.Errorf("agent: unknown frame %q", kind)
	}
	if err == nil && (e.arrived != nil || e.started != nil || e.failed != nil || e.exited != nil) {
		k.sendEvent(e)
	}
	return false, err
}

// handlePMI feeds bytes of a rank's PMI connection to the process manager.
func (k *agentLink) handlePMI(rank int, b []byte) {
	s := k.sessions[rank]
	if s == nil {
		var err error
		s, err = k.pmi.Attach(rank, func(b []byte) { k.out.Send(frame.PMI, rank, b) })
		if err != nil { // an agent's mistake
			k.notef("%v", err)
			return
		}
		k.sessions[rank] = s
	}
	if len(b) == 0 {
		return
	}
	if err := s.Feed(b); err != nil && !k.refused[rank] {
		k.refused[rank] = true
		k.notef("%v: its connection to the process manager is closed", err)
		k.out.Send(frame.PMI, rank, nil)
	}
}

// stdinWindow is the maximum number of bytes of standard input in flight to a rank.
const stdinWindow = 256 << 10

// A stdinCredit is the flow control window of a rank's standard input.
type stdinCredit struct {
	mu        sync.Mutex
	change    sync.Cond
	available int
	closed    bool
}

func newStdinCredit() *stdinCredit {
	c := &stdinCredit{available: stdinWindow}
	c.change.L = &c.mu
	return c
}

// grant adds n bytes to the window.
func (c *stdinCredit) grant(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.available = min(c.available+max(n, 0), stdinWindow)
	c.change.Broadcast()
}

// close wakes the waiters of acquire, which then fail.
func (c *stdinCredit) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.change.Broadcast()
}

// acquire waits until n bytes of credit are available and takes them. It reports false if the link
// is closed.
func (c *stdinCredit) acquire(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.available < n && !c.closed {
		c.change.Wait()
	}
	c.available -= n
	return !c.closed
}

// sshCommand is the command that reaches other hosts. It has no terminal, no X11 and asks no
// questions. It gives up after 10 s without a connection and after 15 s (3 x 5 s) without a reply.
var sshCommand = []string{"ssh", "-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"}

// agentCommand returns the command that runs an agent on a host.
func (o *Options) agentCommand(host string) *exec.Cmd {
	agent := o.Agent
	if len(o.Remote) > 0 {
		agent = o.Remote
	}
	words, own := []string(nil), ownVariables
	switch {
	case o.isLocal(host):
		words, own = o.Agent, own[:1]
	case len(o.Launch) > 0:
		words = append(slices.Clone(o.Launch), host, shellCommand(agent))
	case len(o.Hosts) == 0 && o.Allocation != nil && o.Allocation.command != nil:
		words = o.Allocation.command(host, agent)
	default:
		words = append(slices.Clone(sshCommand), host, shellCommand(agent))
	}
	cmd := exec.Command(words[0], words[1:]...)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !slices.Contains(own, name) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// ownVariables are the variables of the launcher's environment that must not reach an agent. The
// first describes the ssh connection of the launcher's user; an agent reads its own. Commands such
// as srun copy the environment to other hosts, where SOFTRNIC_ADDR is wrong; the Slurm variables
// are options of srun for ranks and would apply to the one agent of a host.
var ownVariables = []string{"SSH_CONNECTION", "SOFTRNIC_ADDR", "SLURM_NTASKS_PER_NODE", "SLURM_DISTRIBUTION", "SLURM_HOSTFILE"}

// shellCommand returns a command line for a POSIX shell.
func shellCommand(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellQuote(word)
	}
	return "exec " + strings.Join(quoted, " ")
}

// shellQuote quotes a word for a POSIX shell.
func shellQuote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// exportedEnviron returns the variables of the launcher's environment that ranks on other hosts
// inherit: those of softrnic except the address, which differs by host, and those of the Go
// runtime.
func exportedEnviron(environ []string) (list []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "SOFTRNIC_ADDR", "SOFTRNIC_PMI_SECRET":
		case "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOTRACEBACK":
			list = append(list, v)
		default:
			if strings.HasPrefix(name, "SOFTRNIC_") {
				list = append(list, v)
			}
		}
	}
	return list
}
