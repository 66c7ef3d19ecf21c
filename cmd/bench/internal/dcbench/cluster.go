package dcbench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
	"github.com/softrnic/softrnic/datacutter"
)

// Config says how the processes of a cluster are connected. Only Over is
// required.
type Config struct {
	Transport sdpbench.Transport

	Processes int // 2 or more; 0 means 2

	// The buffers of SDP, as sdp.Options has them. TCP has what the system
	// gives.
	Buffers, BufferBytes int
}

// A Cluster is processes that wait until they are asked for a run. For one
// goroutine.
type Cluster struct {
	transport sdpbench.Transport
	g         *proc.Group
}

// Open starts the processes. The caller closes the cluster.
func Open(ctx context.Context, c Config) (*Cluster, error) {
	if c.Transport != sdpbench.TCP && !slices.Contains(sdpbench.FlowControls(), c.Transport) {
		return nil, fmt.Errorf("dcbench: no carrier %q; there are: %v", c.Transport, append(sdpbench.FlowControls(), sdpbench.TCP))
	}
	switch {
	case c.Processes == 0:
		c.Processes = 2
	case c.Processes < 2:
		return nil, fmt.Errorf("dcbench: %d processes: with less than 2 there is no network between filters", c.Processes)
	}
	members := make([]proc.Spec, c.Processes)
	for i := range members {
		members[i] = proc.Spec{Name: worker, Role: roleMember, Args: c}
	}
	g, err := proc.Start(ctx, proc.Options{Timeout: runTimeout + 10*time.Second}, members...)
	if err != nil {
		return nil, err
	}
	return &Cluster{c.Transport, g}, nil
}

// Close ends the processes. Closing twice is safe.
func (c *Cluster) Close() { c.g.Close() }

// A Result is what a run took.
type Result struct {
	Elapsed  time.Duration
	Units    uint64 // that filters sent to one another
	Messages uint64 // of SDP that carried them; 0 with TCP, which does not tell
}

// Run has the application make a data set's picture. Another picture than the
// data set's is an error.
func (c *Cluster) Run(ctx context.Context, d *DataSet) (Result, error) {
	members, err := proc.Call[request, reply](ctx, c.g, request{App: d.app, Path: d.path, UnitSize: d.unitSize})
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.transport, err)
	}
	if got := *members[0].Picture; got != d.picture {
		return Result{}, fmt.Errorf("%s: wrong data: the %s makes %v, and without filters %v", c.transport, d.app, got, d.picture)
	}
	var all datacutter.Report
	var r Result
	for _, m := range members {
		all = all.Merge(m.Report)
		r.Messages += m.Messages
	}
	r.Elapsed = all.Elapsed()
	for _, i := range all.Instances {
		r.Units += i.Out.Units
	}
	return r, nil
}

// Rounds is Run as measure.Alternate takes it; the figure is the time in
// milliseconds. Unless it is nil, see is told of each result.
func (c *Cluster) Rounds(d *DataSet, see func(Result)) measure.Round {
	return func(ctx context.Context) (float64, error) {
		r, err := c.Run(ctx, d)
		if err == nil && see != nil {
			see(r)
		}
		return measure.Micros(r.Elapsed) / 1000, err
	}
}
