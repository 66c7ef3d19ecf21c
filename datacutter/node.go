package datacutter

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Node is a host of a run. It listens before it runs the instances, so that the hosts can exchange their
// addresses.
type Node struct {
	network  Network
	listener net.Listener
	grace    time.Duration
	ran      atomic.Bool

	closeOnce func() error // closes listener once
}

// Listen creates a Node that listens on the network. The caller passes its Addr to the other hosts and calls
// Run, or Close.
func Listen(ctx context.Context, network Network) (*Node, error) {
	if network == nil {
		return nil, fmt.Errorf("datacutter: listen: %w: the network is nil", ErrJob)
	}
	l, err := network.Listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("datacutter: listen: %w", err)
	}
	return &Node{network: network, listener: l, grace: defaultGrace, closeOnce: sync.OnceValue(l.Close)}, nil
}

// Addr returns the address for other hosts.
func (n *Node) Addr() string { return n.listener.Addr().String() }

// Close closes a Node that will not Run. It is idempotent, also after Run.
func (n *Node) Close() error { return n.closeOnce() }

// Run runs the instances that the job's layout assigns to host me. It returns when they and all instances
// downstream of them, on any host, have finished every work, or when the run has failed. addrs are the
// addresses of all hosts by name. A Node runs once; Run closes it.
//
// The error is a *FilterError if an instance failed. If another host failed, it is a *RemoteError with that
// host's reason, unless the reason could not be delivered. If ctx ended, the error wraps its cause, and names
// the connection that the run waited for, if any.
// cause, and where the run still waited for connections it names one.
func (n *Node) Run(ctx context.Context, job Job, me string, addrs map[string]string) (Report, error) {
	defer n.Close()
	if n.ran.Swap(true) {
		return Report{}, fmt.Errorf("datacutter: %w: a Node runs once", ErrJob)
	}
	p, err := newPlan(&job)
	if err == nil {
		err = checkAddrs(p.Layout, me, addrs)
	}
	if err != nil {
		return Report{}, fmt.Errorf("datacutter: %w", err)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	return newRun(ctx, fail, n, p, me, addrs).runAll()
}

// checkAddrs checks that the layout uses host me, and that all other hosts have an address.
func checkAddrs(l Layout, me string, addrs map[string]string) error {
	hosts := l.Hosts()
	if !slices.Contains(hosts, me) {
		return fmt.Errorf("%w: the layout places nothing on host %q", ErrJob, me)
	}
	for _, h := range hosts {
		if h != me && addrs[h] == "" {
			return fmt.Errorf("%w: host %s has no address", ErrJob, h)
		}
	}
	return nil
}

// Run runs a job with all its hosts in this process, each as a Node of its own. Data between hosts goes over
// the network, as between processes.
func Run(ctx context.Context, network Network, job Job) (Report, error) {
	p, err := newPlan(&job)
	if err != nil {
		return Report{}, fmt.Errorf("datacutter: %w", err)
	}
	hosts := job.Layout.Hosts()
	nodes, addrs := make([]*Node, len(hosts)), make(map[string]string)
	for i, h := range hosts {
		n, err := Listen(ctx, network)
		if err != nil {
			for _, n := range nodes[:i] {
				n.Close()
			}
			return Report{}, fmt.Errorf("host %s: %w", h, err)
		}
		nodes[i], addrs[h] = n, n.Addr()
	}
	ctx, fail := context.WithCancelCause(ctx) // the first failure of any host ends all
	defer fail(nil)
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		report Report
		failed error
	)
	for i, h := range hosts {
		r := newRun(ctx, fail, nodes[i], p, h, addrs)
		wg.Go(func() {
			did, err := r.runAll()
			mu.Lock()
			defer mu.Unlock()
			report = report.Merge(did)
			if failed == nil {
				failed = err
			}
		})
	}
	wg.Wait()
	return report, failed
}

// Report describes a finished run.
type Report struct {
	Start, End time.Time        // from the first data to the end of the last work, without connecting
	Instances  []InstanceReport // ordered by group, filter and copy
	Strangers  int              // number of rejected connections that did not belong to the job
}

// InstanceReport contains the counts of an instance.
type InstanceReport struct {
	Instance
	In, Out Counts // of all streams
}

// Elapsed returns the time from Start to End.
func (r Report) Elapsed() time.Duration { return r.End.Sub(r.Start) }

// Merge returns the combined report of two hosts.
func (r Report) Merge(o Report) Report {
	if r.Start.IsZero() || !o.Start.IsZero() && o.Start.Before(r.Start) {
		r.Start = o.Start
	}
	if o.End.After(r.End) {
		r.End = o.End
	}
	r.Instances = append(slices.Clip(r.Instances), o.Instances...)
	slices.SortFunc(r.Instances, func(a, b InstanceReport) int { return a.compare(b.Instance) })
	r.Strangers += o.Strangers
	return r
}
