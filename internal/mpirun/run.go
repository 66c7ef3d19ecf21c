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

	"github.com/softrnic/softrnic/internal/mpirun/frame"
	"github.com/softrnic/softrnic/internal/pmi/server"
)

// run is a job that runs.
type run struct {
	Options
	seats   []seat
	nodes   []string // names of hosts
	local   []bool   // of nodes: the host is this one
	job     *server.Job
	verdict *verdict
	links   []*link

	stderr  *sink
	streams [][2]*stream // of each rank: output, error output
	files   []io.Closer
	refused []bool // ranks whose PMI is nonsense; each is its link's

	lossMu sync.Mutex
	loss   error // of output

	events chan event
	over   chan struct{} // closed when nobody takes events any more
}

// Run runs a job to its end. A failure of the job is a *Failure, a mistake in the
// options an *OptionError. When ctx ends, the job is ended.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	build := &builder{stderr: o.Stderr}
	defer func() {
		if cleanErr := build.clean(); err == nil {
			err = cleanErr
		}
	}()
	programs := make([]Program, len(o.Programs))
	for i, p := range o.Programs {
		made, err := build.program(ctx, p.Args[0])
		if err != nil {
			return err
		}
		p.Args = append([]string{made}, p.Args[1:]...)
		programs[i] = p
	}
	o.Programs = programs

	r := &run{Options: o, events: make(chan event), over: make(chan struct{})}
	if r.seats, r.nodes, err = o.placeRanks(); err != nil {
		return err
	}
	for _, name := range r.nodes {
		r.local = append(r.local, r.here(name))
	}
	r.refused = make([]bool, len(r.seats))
	defer func() {
		if closeErr := r.close(); err == nil {
			err = closeErr
		}
	}()
	if err := r.open(); err != nil {
		return err
	}
	return r.whole(ctx)
}

// open makes what the job needs before anything starts.
func (r *run) open() (err error) {
	id := make([]byte, 8)
	rand.Read(id)
	o := server.Options{Size: len(r.seats), ID: fmt.Sprintf("softrnic_%d_%s", os.Getpid(), hex.EncodeToString(id)), Notify: func(e server.Event) {
		r.say(event{job: &e})
	}}
	hosts := make([]string, len(r.seats))
	for rank, s := range r.seats {
		o.Nodes, o.Apps = append(o.Nodes, s.node), append(o.Apps, s.app)
		hosts[rank] = r.nodes[s.node]
	}
	if r.job, err = server.New(o); err != nil {
		return err
	}
	r.verdict = newVerdict(hosts)
	r.verdict.hosts = len(r.nodes) > 1
	return r.openOutput()
}

// say tells the loop what happens.
func (r *run) say(e event) {
	select {
	case r.events <- e:
	case <-r.over:
	}
}

// note tells people something that is no rank's output.
func (r *run) note(format string, args ...any) {
	s := newStream(r.stderr, "", false)
	fmt.Fprintf(s, "softrnic mpirun: "+format+"\n", args...)
}

// spec is what a host is to start.
func (r *run) spec(node int) frame.Spec {
	dir, _ := os.Getwd()
	spec := frame.Spec{Host: r.nodes[node], Size: len(r.seats), Environ: r.Environ, Bind: string(r.Bind), GraceMillis: int(r.Grace.Milliseconds())}
	spec.Peers, spec.Family = r.peers(node)
	if r.local[node] && isAddress(r.nodes[node]) {
		spec.Here = r.nodes[node]
	}
	if !r.local[node] {
		spec.Environ = append(exported(os.Environ()), r.Environ...)
	}
	if r.Port || !inherits {
		secret := make([]byte, 16)
		rand.Read(secret)
		spec.Secret = hex.EncodeToString(secret)
	}
	for rank, s := range r.seats {
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

// lostTime is how long agents have to end, beyond the time that ranks have.
const lostTime = 10 * time.Second

// causeTime is the time that the news of a killed rank may take longer than that of ranks
// on other hosts which have lost it.
const causeTime = 500 * time.Millisecond

// whole runs the loop: what happens comes in, and the verdict says when to end.
func (r *run) whole(ctx context.Context) error {
	defer close(r.over)
	end := func(grace time.Duration) {
		for _, k := range r.links {
			k.end(grace)
		}
	}
	open := 0
	for _, host := range r.nodes {
		k, err := r.link(host)
		if err != nil {
			r.verdict.lost(host, false, err.Error())
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
			t := time.NewTimer(causeTime)
			defer t.Stop()
			cause = t.C
		}
		if (r.verdict.ending && !r.verdict.pending || r.verdict.done()) && !ending {
			ending, timeout = true, nil
			end(r.Grace)
			t := time.NewTimer(r.Grace + lostTime)
			defer t.Stop()
			giveUp = t.C
		}
		select {
		case e := <-r.events:
			if e.isEnd {
				open--
			}
			if e.arrived != nil && e.link.arrival == nil {
				e.link.arrival = e.arrived
				if missing--; missing == 0 && !ending {
					r.startRanks()
				}
			}
			r.handle(e)
		case s := <-r.Signals:
			number := 0
			if n, ok := s.(syscall.Signal); ok {
				number = int(n)
			}
			if slices.Contains(Forwarded, s) {
				for _, k := range r.links {
					if k.started {
						k.out.Send(frame.Kick, 0, strconv.AppendInt(nil, int64(number), 10))
					}
				}
				continue
			}
			if ending {
				end(0)
			}
			r.verdict.interrupted("ended by the user ("+s.String()+")", number)
		case <-done:
			r.verdict.interrupted(context.Cause(ctx).Error(), int(syscall.SIGINT))
			done = nil
		case <-timeout:
			r.verdict.timeout(r.Timeout, r.job.Ranks())
		case <-cause:
			r.verdict.pending = false
		case <-launch.C:
			r.launchTimedOut()
		case <-giveUp:
			for _, k := range r.links {
				_ = k.cmd.Process.Kill()
			}
			r.note("some agents do not answer; what they have started may still run")
		}
	}
	if f := r.verdict.failure; f != nil {
		return f
	}
	return nil
}

// startRanks tells all agents what to run. All have arrived, so each can be told where
// the others are.
func (r *run) startRanks() {
	for node, k := range r.links {
		k.started = true
		if err := k.out.SendJSON(frame.Start, 0, r.spec(node)); err != nil {
			r.verdict.lost(k.host, true, err.Error())
			return
		}
	}
	if r.Stdin != nil {
		inBackground()
		go r.input(r.links[0])
	}
}

// launchTimedOut fails the job if there are agents that have not arrived.
func (r *run) launchTimedOut() {
	var hosts []string
	for _, k := range r.links {
		if k.arrival == nil {
			hosts = append(hosts, k.host)
		}
	}
	if len(hosts) > 0 {
		r.verdict.unreachable(hosts, r.LaunchTimeout)
	}
}

// handle tells the verdict and the process manager what has happened.
func (r *run) handle(e event) {
	switch {
	case e.started != nil:
		r.verdict.started(e.rank, *e.started)
	case e.failed != nil:
		r.verdict.notStarted(e.rank, *e.failed)
		r.ended(e.rank)
	case e.exited != nil:
		state := r.job.Ranks()[e.rank].State
		r.verdict.exited(e.rank, *e.exited, state != server.NotJoined, state == server.Finalized)
		r.ended(e.rank)
	case e.job != nil && e.job.Kind == server.Abort:
		r.verdict.aborted(e.job.Rank, e.job.Code, e.job.Why)
	case e.job != nil:
		r.verdict.stuck(e.job.Waiting, e.job.Missing)
	case e.lost != nil:
		r.verdict.lost(e.link.host, e.greeted, e.lost.Error())
	case e.isEnd && !r.verdict.ending && !r.verdict.done():
		r.verdict.lost(e.link.host, true, "its agent was ended")
	}
}

// ended tells the process manager that a rank has ended. What follows from it
// comes as an event, which the caller takes: so not in its goroutine.
func (r *run) ended(rank int) {
	go r.job.ProcessEnded(rank)
}

// input passes on what the launcher reads to rank 0.
func (r *run) input(k *link) {
	b := make([]byte, frame.Chunk)
	for {
		n, err := r.Stdin.Read(b)
		if n > 0 {
			if !k.stdin.take(n) {
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
