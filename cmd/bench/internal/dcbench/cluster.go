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

// BufferedTCP is Go's TCP with a buffered writer for the units of each stream.
const BufferedTCP sdpbench.Transport = "tcp-bufio"

// Transports returns all transports, TCP first.
func Transports() []sdpbench.Transport {
	return append([]sdpbench.Transport{sdpbench.TCP, BufferedTCP}, sdpbench.FlowControls()...)
}

// Config describes how the processes of a cluster are connected. Only Transport is required.
type Config struct {
	Transport sdpbench.Transport

	Processes int // at least 2; 0 means 2

	// The buffers of SDP; see sdp.Options. TCP uses the system's defaults.
	Buffers, BufferBytes int
}

// A Cluster is a set of processes that wait for requests. It is used by one goroutine only.
type Cluster struct {
	*proc.Group
	transport sdpbench.Transport
}

// Open starts the processes. The caller must close the cluster.
func Open(ctx context.Context, c Config) (*Cluster, error) {
	if !slices.Contains(Transports(), c.Transport) {
		return nil, fmt.Errorf("dcbench: unknown transport %q; known transports: %v", c.Transport, Transports())
	}
	switch {
	case c.Processes == 0:
		c.Processes = 2
	case c.Processes < 2:
		return nil, fmt.Errorf("dcbench: %d processes: want at least 2", c.Processes)
	}
	members := make([]proc.Spec, c.Processes)
	for i := range members {
		members[i] = proc.Spec{Name: worker, Role: roleMember, Args: c}
	}
	g, err := proc.Start(ctx, proc.Options{Timeout: runTimeout + 10*time.Second}, members...)
	if err != nil {
		return nil, err
	}
	return &Cluster{g, c.Transport}, nil
}

// A Result is the measurement of a run.
type Result struct {
	Elapsed  time.Duration
	Units    uint64 // sent between filters
	Messages uint64 // SDP messages with these units; 0 with TCP

	Processor time.Duration // processor time of all processes, user and system; 0 if the system does not report it
}

// Run runs the application on a data set. An image that differs from the reference image of the
// data set is an error.
func (c *Cluster) Run(ctx context.Context, d *DataSet) (Result, error) {
	members, err := proc.Call[request, reply](ctx, c.Group, request{App: d.app, Path: d.path, UnitSize: d.unitSize})
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.transport, err)
	}
	if got := *members[0].Picture; got != d.picture {
		return Result{}, fmt.Errorf("%s: wrong data: %s returned %v, want %v", c.transport, d.app, got, d.picture)
	}
	var all datacutter.Report
	var r Result
	for _, m := range members {
		all = all.Merge(m.Report)
		r.Messages += m.Messages
		r.Processor += m.Processor
	}
	r.Elapsed = all.Elapsed()
	for _, i := range all.Instances {
		r.Units += i.Out.Units
	}
	return r, nil
}

// Rounds returns Run for measure.Alternate. The figure is the time in milliseconds. It calls
// onResult with each result, unless onResult is nil.
func (c *Cluster) Rounds(d *DataSet, onResult func(Result)) measure.Round {
	return func(ctx context.Context) (float64, error) {
		r, err := c.Run(ctx, d)
		if err == nil && onResult != nil {
			onResult(r)
		}
		return measure.Micros(r.Elapsed) / 1000, err
	}
}
