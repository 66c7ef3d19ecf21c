package mpirun

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
	"github.com/softrnic/softrnic/internal/pmi/server"
)

// A job is the state of a running job.
type job struct {
	Options
	placements []placement
	nodes      []string // names of hosts
	local      []bool   // of nodes: the host is this one
	pmi        *server.Job
	verdict    *verdict
	links      []*agentLink

	stderr  *lineWriter
	streams [][2]*rankStream // of each rank: output, error output
	files   []io.Closer
	refused []bool // ranks whose PMI is nonsense; each is its link's

	writeErrMu sync.Mutex
	writeErr   error // of output

	events chan event
	done   chan struct{} // closed when the loop no longer receives events
}

// Run runs a job to its end. The failure of a job is a *Failure, an invalid option an
// *OptionError. The end of ctx terminates the job.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	build := &builder{stderr: o.Stderr}
	defer func() {
		if cleanErr := build.removePrograms(); err == nil {
			err = cleanErr
		}
	}()
	programs := make([]Program, len(o.Programs))
	for i, p := range o.Programs {
		made, err := build.build(ctx, p.Args[0])
		if err != nil {
			return err
		}
		p.Args = append([]string{made}, p.Args[1:]...)
		programs[i] = p
	}
	o.Programs = programs

	r := &job{Options: o, events: make(chan event), done: make(chan struct{})}
	if r.placements, r.nodes, err = o.placeRanks(); err != nil {
		return err
	}
	for _, name := range r.nodes {
		r.local = append(r.local, r.isLocal(name))
	}
	r.refused = make([]bool, len(r.placements))
	defer func() {
		if closeErr := r.closeOutput(); err == nil {
			err = closeErr
		}
	}()
	if err := r.prepare(); err != nil {
		return err
	}
	return r.runLoop(ctx)
}

// prepare creates the process manager and opens the output before any agent starts.
func (r *job) prepare() (err error) {
	id := make([]byte, 8)
	rand.Read(id)
	o := server.Options{Size: len(r.placements), ID: fmt.Sprintf("softrnic_%d_%s", os.Getpid(), hex.EncodeToString(id)), Notify: func(e server.Event) {
		r.sendEvent(event{job: &e})
	}}
	hosts := make([]string, len(r.placements))
	for rank, s := range r.placements {
		o.Nodes, o.Apps = append(o.Nodes, s.node), append(o.Apps, s.app)
		hosts[rank] = r.nodes[s.node]
	}
	if r.pmi, err = server.New(o); err != nil {
		return err
	}
	r.verdict = newVerdict(hosts)
	r.verdict.multipleHosts = len(r.nodes) > 1
	return r.openOutput()
}

// sendEvent passes e to the loop, or drops it after the loop has ended.
func (r *job) sendEvent(e event) {
	select {
	case r.events <- e:
	case <-r.done:
	}
}

// notef writes a message of the launcher to the error output.
func (r *job) notef(format string, args ...any) {
	s := newRankStream(r.stderr, "", false)
	fmt.Fprintf(s, "softrnic mpirun: "+format+"\n", args...)
}

// agentSpec returns the Spec for the agent of a node.
func (r *job) agentSpec(node int) frame.Spec {
	dir, _ := os.Getwd()
	spec := frame.Spec{Host: r.nodes[node], Size: len(r.placements), Environ: r.Environ, Bind: string(r.Bind), GraceMillis: int(r.Grace.Milliseconds())}
	spec.Peers, spec.Family = r.peerAddrs(node)
	if r.local[node] && isAddress(r.nodes[node]) {
		spec.Here = r.nodes[node]
	}
	if !r.local[node] {
		spec.Environ = append(exportedEnviron(os.Environ()), r.Environ...)
	}
	if r.Port || !server.CanPair {
		secret := make([]byte, 16)
		rand.Read(secret)
		spec.Secret = hex.EncodeToString(secret)
	}
	for rank, s := range r.placements {
		if s.node != node {
			continue
		}
		p := r.Programs[s.app]
		at := dir
		if p.Dir != "" {
			at = p.Dir
		}
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		spec.Ranks = append(spec.Ranks, frame.Rank{Rank: rank, Args: p.Args, Dir: at, Environ: p.Environ, Stdin: rank == 0 && r.Stdin != nil})
	}
	return spec
}

// agentExitTimeout is the time for agents to end after the grace period of the ranks.
const agentExitTimeout = 10 * time.Second

// causeDelay is the time by which the report of a killed rank may come later than the reports of
// ranks on other hosts that failed because of it.
const causeDelay = 500 * time.Millisecond

// runLoop starts the agents and handles events until all have ended. The verdict decides when to
// terminate the job.
func (r *job) runLoop(ctx context.Context) error {
	defer close(r.done)
	end := func(grace time.Duration) {
		for _, k := range r.links {
			k.stop(grace)
		}
	}
	open := 0
	for _, host := range r.nodes {
		k, err := r.startAgent(host)
		if err != nil {
			r.verdict.hostLost(host, false, err.Error())
			break
		}
		r.links = append(r.links, k)
		open++
	}
	var timeout, giveUp <-chan time.Time
	launch := time.NewTimer(r.LaunchTimeout)
	defer launch.Stop()
	missing := len(r.links) // agents that have not arrived
	if r.Timeout > 0 {
		t := time.NewTimer(r.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	ending, done := false, ctx.Done()
	var cause <-chan time.Time // the end of the wait for the cause of a failure
	for open > 0 {
		if r.verdict.pending && cause == nil {
			t := time.NewTimer(causeDelay)
			defer t.Stop()
			cause = t.C
		}
		if (r.verdict.ending && !r.verdict.pending || r.verdict.allEnded()) && !ending {
			ending, timeout = true, nil
			end(r.Grace)
			t := time.NewTimer(r.Grace + agentExitTimeout)
			defer t.Stop()
			giveUp = t.C
		}
		select {
		case e := <-r.events:
			if e.linkEnded {
				open--
			}
			if e.arrived != nil && e.link.arrival == nil {
				e.link.arrival = e.arrived
				if missing--; missing == 0 && !ending {
					r.startRanks()
				}
			}
			r.handleEvent(e)
		case s := <-r.Signals:
			number := 0
			if n, ok := s.(syscall.Signal); ok {
				number = int(n)
			}
			if slices.Contains(ForwardedSignals, s) {
				for _, k := range r.links {
					if k.started {
						k.out.Send(frame.Signal, 0, strconv.AppendInt(nil, int64(number), 10))
					}
				}
				continue
			}
			if ending {
				end(0)
			}
			r.verdict.jobInterrupted("ended by the user ("+s.String()+")", number)
		case <-done:
			r.verdict.jobInterrupted(context.Cause(ctx).Error(), int(syscall.SIGINT))
			done = nil
		case <-timeout:
			r.verdict.jobTimedOut(r.Timeout, r.pmi.Ranks())
		case <-cause:
			r.verdict.pending = false
		case <-launch.C:
			r.launchTimedOut()
		case <-giveUp:
			for _, k := range r.links {
				_ = k.cmd.Process.Kill()
			}
			r.notef("some agents do not reply; their processes may still run")
		}
	}
	if f := r.verdict.failure; f != nil {
		return f
	}
	return nil
}

// startRanks sends every agent its Spec. All agents must have sent their HostInfo, so that each
// Spec can name the other hosts.
func (r *job) startRanks() {
	for node, k := range r.links {
		k.started = true
		if err := k.out.SendJSON(frame.Start, 0, r.agentSpec(node)); err != nil {
			r.verdict.hostLost(k.host, true, err.Error())
			return
		}
	}
	if r.Stdin != nil {
		ignoreTTYInput()
		go r.forwardStdin(r.links[0])
	}
}

// launchTimedOut fails the job if an agent has not sent its HostInfo.
func (r *job) launchTimedOut() {
	var hosts []string
	for _, k := range r.links {
		if k.arrival == nil {
			hosts = append(hosts, k.host)
		}
	}
	if len(hosts) > 0 {
		r.verdict.hostsUnreachable(hosts, r.LaunchTimeout)
	}
}

// handleEvent passes an event to the verdict and the process manager.
func (r *job) handleEvent(e event) {
	switch {
	case e.started != nil:
		r.verdict.rankStarted(e.rank, *e.started)
	case e.failed != nil:
		r.verdict.rankNotStarted(e.rank, *e.failed)
		r.notifyRankEnded(e.rank)
	case e.exited != nil:
		state := r.pmi.Ranks()[e.rank].State
		r.verdict.rankExited(e.rank, *e.exited, state != server.NotJoined, state == server.Finalized)
		r.notifyRankEnded(e.rank)
	case e.job != nil && e.job.Kind == server.Abort:
		r.verdict.jobAborted(e.job.Rank, e.job.Code, e.job.Why)
	case e.job != nil:
		r.verdict.ranksStuck(e.job.Waiting, e.job.Missing)
	case e.linkErr != nil:
		r.verdict.hostLost(e.link.host, e.sawHello, e.linkErr.Error())
	case e.linkEnded && !r.verdict.ending && !r.verdict.allEnded():
		r.verdict.hostLost(e.link.host, true, "agent was terminated")
	}
}

// notifyRankEnded tells the process manager that a rank has ended. It runs in a goroutine because
// the resulting events are received by the caller's loop.
func (r *job) notifyRankEnded(rank int) {
	go r.pmi.ProcessEnded(rank)
}

// forwardStdin copies the launcher's standard input to rank 0.
func (r *job) forwardStdin(k *agentLink) {
	b := make([]byte, frame.Chunk)
	for {
		n, err := r.Stdin.Read(b)
		if n > 0 {
			if !k.stdin.acquire(n) {
				return
			}
			k.out.Send(frame.Stdin, 0, b[:n])
		}
		if err != nil {
			k.out.Send(frame.Stdin, 0, nil)
			return
		}
	}
}
