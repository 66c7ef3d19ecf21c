// Package agent is the part of softrnic mpirun that runs on each host. It starts
// ranks, forwards their input, output and PMI connections, and terminates the
// processes that they leave behind.
//
//	err := agent.Run(os.Stdin, os.Stdout)
//
// The launcher controls it by frames on its input. The end of the input terminates
// all ranks, so none survives a launcher or an ssh that dies.
//
// Each rank has its own process group. On Linux the agent finds every descendant of
// a rank, in whatever group or session, because orphans become its children
// (PR_SET_CHILD_SUBREAPER), and ranks die with an agent that dies
// (PR_SET_PDEATHSIG). On other Unix systems it finds only the processes in the
// group, and elsewhere only the ranks.
package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cmd/internal/cpus"
	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
	"github.com/softrnic/softrnic/internal/pmi/server"
)

// An agent runs the ranks of one host.
type agent struct {
	out       *frame.Writer
	spec      frame.Spec
	processes *processTree
	cpuSets   [][]int      // of processors, that ranks get in turn
	port      *server.Port // nil where sockets are inherited
	addr      string       // SOFTRNIC_ADDR for ranks to which the user gives none; may be empty

	ranks map[int]*process // all of them, from the beginning

	output  sync.WaitGroup // readers of the output of ranks
	running sync.WaitGroup // waiters for their end
	notes   atomic.Uint64
}

// Run runs an agent. It returns after the launcher's Stop frame or the end of in, when no process
// of the ranks is left. An error concerns in and out only.
func Run(in io.Reader, out io.Writer) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, stopSignals...) // SIGPIPE too: a write to a dead launcher must not skip the cleanup
	defer signal.Stop(signals)
	if _, err := io.WriteString(out, frame.Hello); err != nil {
		return err
	}
	a := &agent{out: frame.NewWriter(out), ranks: map[int]*process{}}
	if err := a.out.WriteJSON(frame.HostReady, 0, hostInfo()); err != nil {
		return err
	}
	frames := frame.NewReader(in)
	kind, _, b, err := frames.Next()
	if errors.Is(err, io.EOF) {
		return nil // the launcher is gone
	}
	if err == nil && kind != frame.Start {
		err = fmt.Errorf("frame %q before the Start frame", kind)
	}
	if err == nil {
		err = json.Unmarshal(b, &a.spec)
	}
	if err != nil {
		return err
	}
	binding, err := cpus.ParseBinding(cmp.Or(a.spec.Bind, string(cpus.Auto)))
	if err != nil {
		return err
	}
	var unbound error
	a.cpuSets, unbound = binding.CPUSets(len(a.spec.Ranks))
	for i, r := range a.spec.Ranks { // registered before frames for them arrive
		p := newProcess(a, r, i)
		p.failed = errors.Join(p.failed, unbound)
		a.ranks[r.Rank] = p
	}
	ending := make(chan time.Duration, 4)
	go a.readCommands(frames, ending)

	// PR_SET_PDEATHSIG is sent when the parent thread ends, so it must not end before.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a.processes = newProcessTree()
	if err := a.openPort(); err != nil {
		a.sendNote(fmt.Sprintf("no port for ranks: %v", err))
	}
	a.findAddress()
	for _, r := range a.spec.Ranks {
		a.ranks[r.Rank].startRank(r)
	}
	wait := a.gracePeriod()
	for waiting := true; waiting; {
		select {
		case wait = <-ending:
			waiting = false
		case s := <-signals:
			waiting = isSIGPIPE(s)
		}
	}
	a.stopAll(wait, ending)
	var refused uint64
	if a.port != nil {
		refused = a.port.Rejected()
	}
	return a.out.WriteJSON(frame.Finished, 0, frame.Summary{Refused: refused})
}

// gracePeriod is the default time between SIGTERM and SIGKILL.
func (a *agent) gracePeriod() time.Duration {
	return time.Duration(a.spec.GraceMillis) * time.Millisecond
}

// stopAll terminates all processes: by SIGTERM, and by SIGKILL after wait or on request. It
// returns when none is left and their output is sent.
func (a *agent) stopAll(wait time.Duration, ending <-chan time.Duration) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	kill := wait <= 0
	pause := time.Millisecond
	// A process forked during one scan is found by the next.
	for clear := 0; clear < 2; {
		if a.processes.signalAll(kill) == 0 {
			clear++
			continue
		}
		clear = 0
		select {
		case wait := <-ending:
			kill = kill || wait <= 0
		case <-deadline.C:
			kill = true
		case <-time.After(pause):
			pause = min(2*pause, 100*time.Millisecond)
		}
	}
	a.running.Wait()
	if a.port != nil {
		a.port.Close()
	}
	for _, p := range a.ranks {
		p.closeInputs()
	}
	a.output.Wait()
}

// readCommands executes the launcher's frames until the end of its input.
func (a *agent) readCommands(frames *frame.Reader, ending chan<- time.Duration) {
	end := func(wait time.Duration) {
		select {
		case ending <- wait:
		default:
		}
	}
	for {
		kind, rank, b, err := frames.Next()
		if err != nil {
			end(a.gracePeriod())
			return
		}
		switch kind {
		case frame.Stop:
			var e frame.StopRequest
			if err := json.Unmarshal(b, &e); err != nil {
				a.sendNote(fmt.Sprintf("invalid Stop frame: %v", err))
			}
			end(time.Duration(e.GraceMillis) * time.Millisecond)
		case frame.Signal:
			n, err := strconv.Atoi(string(b))
			if err != nil {
				a.sendNote(fmt.Sprintf("invalid Signal frame: %v", err))
				continue
			}
			for _, p := range a.ranks {
				p.sendSignal(syscall.Signal(n))
			}
		case frame.Stdin, frame.PMI:
			if p := a.ranks[rank]; p != nil {
				p.deliver(kind, b)
			}
		default:
			a.sendNote(fmt.Sprintf("unknown frame %q", kind))
		}
	}
}

// maxNotes is the maximum number of notes of an agent, whose causes can repeat without bound.
const maxNotes = 20

// sendNote sends a message for the user, up to maxNotes of them.
func (a *agent) sendNote(text string) {
	switch n := a.notes.Add(1); {
	case n < maxNotes:
		_ = a.out.Write(frame.Note, 0, []byte(text))
	case n == maxNotes:
		_ = a.out.Write(frame.Note, 0, []byte(text+"; further messages of this kind are suppressed"))
	}
}

// openPort opens a TCP port on this host for ranks that inherit no socket.
func (a *agent) openPort() (err error) {
	if a.spec.Secret == "" {
		return nil
	}
	a.port, err = server.Listen(server.PortOptions{
		Address:    "127.0.0.1:0",
		Size:       a.spec.Size,
		Secret:     a.spec.Secret,
		IsExpected: func(rank int) bool { return a.ranks[rank] != nil },
		OnReject:   func(err error) { a.sendNote(err.Error()) },
		OnRank: func(rank int, c net.Conn) {
			a.ranks[rank].attachPMI(c)
		},
	})
	return err
}
