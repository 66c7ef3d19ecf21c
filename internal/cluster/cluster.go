package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/internal/deadline"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/internal/vtime"
)

// DefaultLimit is the default of Options.Limit.
const DefaultLimit = 10 * time.Minute

// Options configure a Cluster.
type Options struct {
	Seed  uint64 // of keys and queue pair numbers
	Hosts int
	Costs Costs

	// Processors is the number of processors that all hosts share, host i using processor
	// i mod Processors, as ranks on one machine do; 0 gives each host its own.
	Processors int

	// Spin is rnic.Options.Spin of hosts that share processors.
	Spin time.Duration

	// Limit is the virtual time at which Run gives up; 0 is DefaultLimit.
	Limit time.Duration
}

// A Cluster is a simulated cluster. It belongs to one goroutine.
type Cluster struct {
	options    Options
	net        *memory.Network
	hosts      []*Host
	due        deadline.Heap[int64, *Host] // hosts by the time at which they run next
	coroutines coroutinePool
	job        job
	running    int     // programs
	errs       []error // of programs
	turns      uint64  // calls of runHost

	// Shared by all adapters.
	batch     *link.Batch
	datagrams *link.Datagrams
}

// Sizes of the shared buffers, as of a device of its own.
const (
	batchBytes    = 256 << 10
	datagramSlots = 16
)

// epoch is the start of the network's clock, because adapters take time 0 for never.
const epoch = 1

// New returns a cluster of hosts without devices at time 0.
func New(o Options) *Cluster {
	c := &Cluster{options: o, net: memory.New(o.Seed), batch: link.NewBatch(batchBytes), datagrams: link.NewDatagrams(datagramSlots)}
	c.net.AdvanceTo(epoch)
	c.job.values = map[string]string{}
	shared := make([]processor, o.Processors)
	for i := range shared {
		shared[i].isShared = true
	}
	for i := range o.Hosts {
		h := &Host{cluster: c, number: i, processor: &processor{}}
		if o.Processors > 0 {
			h.processor = &shared[i%o.Processors]
			h.processor.hosts = append(h.processor.hosts, h)
		}
		h.self = h
		c.hosts = append(c.hosts, h)
	}
	return c
}

// Now returns the virtual time since the start.
func (c *Cluster) Now() time.Duration { return time.Duration(c.net.Now() - epoch) }

// RunCount returns the number of times that a host has run, a measure of the simulation's work.
func (c *Cluster) RunCount() uint64 { return c.turns }

// errLimit says that programs have not returned within Options.Limit.
var errLimit = errors.New("cluster: programs have not returned within the virtual time")

// Run runs a program on each host and returns their joined errors after all have returned, or an
// error if they do not.
func (c *Cluster) Run(program func(*Host) error) error {
	for _, h := range c.hosts {
		c.running++
		h.Go(func() {
			err := errExited
			defer func() {
				c.running--
				if err != nil {
					c.errs = append(c.errs, fmt.Errorf("host %d: %w", h.number, err))
				}
			}()
			err = program(h)
		})
	}
	limit := int64(c.options.Limit)
	if limit == 0 {
		limit = int64(DefaultLimit)
	}
	for c.running > 0 {
		next, ok := c.nextEvent()
		if !ok || next > c.net.Now()+limit {
			c.errs = append(c.errs, c.stuckError())
			break
		}
		c.net.AdvanceTo(next)
		for h := c.due.PopDue(next); h != nil; h = c.due.PopDue(next) {
			c.runHost(h)
		}
	}
	c.coroutines.stopAll()
	return errors.Join(c.errs...)
}

// errExited is the error of a program that called runtime.Goexit, as failed tests do.
var errExited = errors.New("the program did not return")

// stuckError names the programs that have not returned.
func (c *Cluster) stuckError() error {
	return fmt.Errorf("%w: %d of %d at %v", errLimit, c.running, len(c.hosts), c.Now())
}

// nextEvent returns the time of the next event.
func (c *Cluster) nextEvent() (t int64, ok bool) {
	t, ok = c.net.NextEvent()
	if at := c.due.Next(); at != 0 && (!ok || at < t) {
		t, ok = at, true
	}
	return t, ok
}

// scheduleHost makes a host run at a time, or earlier.
func (c *Cluster) scheduleHost(h *Host, at int64) { c.due.SetEarlier(&h.next, h, at) }

// runHost runs the adapter and the goroutines of a host until they have no more work at this time.
func (c *Cluster) runHost(h *Host) {
	c.turns++
	before := vtime.EnterHost(&h.self)
	defer vtime.EnterHost(before)
	now := c.net.Now()
	if h.processor.isShared {
		h.processor.runHosts(h, now)
		return
	}
	for h.runStep(now) {
	}
	h.scheduleNext(now)
}
