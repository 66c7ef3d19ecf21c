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

// Node is a host's place in a run: a listener first, so that the hosts can tell
// one another where they are, and then the instances.
type Node struct {
	network  Network
	listener net.Listener
	grace    time.Duration
	ran      atomic.Bool
}

// Listen makes a Node, which listens on the network. Tell the others its Addr,
// and Run it; or Close it.
func Listen(ctx context.Context, network Network) (*Node, error) {
	if network == nil {
		return nil, fmt.Errorf("datacutter: listen: %w: the network is nil", ErrJob)
	}
	l, err := network.Listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("datacutter: listen: %w", err)
	}
	return &Node{network: network, listener: l, grace: defaultGrace}, nil
}

// Addr is where other hosts reach this one.
func (n *Node) Addr() string { return n.listener.Addr().String() }

// Close gives up a Node that does not Run.
func (n *Node) Close() error { return n.listener.Close() }

// Run runs the instances that the job's layout places on the host of the name
// me, and returns when they have done every work and so have all instances that
// take data from them, on any host; or when anything failed. addrs are the
// addresses of all hosts by their names. A Node runs once; Run closes it.
//
// The error is a *FilterError where it is an instance that failed. When
// another host did it has that host's reason, in a *RemoteError, unless that
// host or the network had no time to say it. When ctx ends the error is its
// cause, and where the run still waited for connections it names one.
func (n *Node) Run(ctx context.Context, job Job, me string, addrs map[string]string) (Report, error) {
	defer n.listener.Close()
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

// Run runs a job with all its hosts in this process, each with a Node of its
// own. Data between hosts goes over the network, as it would between processes.
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

// Report is what a run did.
type Report struct {
	Start, End time.Time        // from the first data to the end of the last work, without the connecting
	Instances  []InstanceReport // in order of group, filter and copy
	Strangers  int              // connections that were refused, because they were none of the job's
}

// InstanceReport is what went through an instance.
type InstanceReport struct {
	Instance
	In, Out Counts // of all streams
}

// Elapsed is the time from Start to End.
func (r Report) Elapsed() time.Duration { return r.End.Sub(r.Start) }

// Merge puts the reports of two hosts together.
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
