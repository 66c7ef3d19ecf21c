package datacutter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// instance is a running Instance.
type instance struct {
	Instance
	run        *run
	def        FilterDef
	inputs     []*Input
	outputs    []*Output
	start, end time.Time
}

// newInstance returns an instance with its inputs and outputs, and registers the expected connections in
// r.slots.
func newInstance(r *run, at Instance) *instance {
	i := &instance{Instance: at, run: r}
	for _, f := range r.plan.Group.Filters {
		if f.Name == at.Filter {
			i.def = f
		}
	}
	for n := range r.plan.Group.Streams {
		s := &r.plan.Group.Streams[n]
		if s.To == at.Filter {
			in := &Input{stream: s, from: r.plan.copies[role{at.Group, s.From}], acked: r.plan.needsAcks(s, at.Group)}
			in.links = make([]*link, len(in.from))
			for c := range in.from {
				wanted := make(chan *link, 1)
				in.slots = append(in.slots, wanted)
				r.slots[slot{n, at.Group, c, at.Copy}] = wanted
			}
			i.inputs = append(i.inputs, in)
		}
		if s.From == at.Filter {
			out := &Output{stream: s, number: n, to: r.plan.copies[role{at.Group, s.To}]}
			out.links = make([]*link, len(out.to))
			i.outputs = append(i.outputs, out)
		}
	}
	return i
}

// runFilter creates the filter, connects it, runs its works and closes its streams.
func (i *instance) runFilter() error {
	f, err := i.def.New(i.Instance)
	if err != nil {
		return fmt.Errorf("new: %w", err)
	}
	if f == nil {
		return fmt.Errorf("%w: New returned no Filter", ErrJob)
	}
	err = i.processWorks(f)
	if c, ok := f.(io.Closer); ok {
		if failed := c.Close(); err == nil && failed != nil {
			err = fmt.Errorf("close: %w", failed)
		}
	}
	if err != nil {
		return err
	}
	return i.closeStreams()
}

// closeStreams sends bye to the consumers, waits for their replies, and only then replies to the producers.
func (i *instance) closeStreams() error {
	for _, out := range i.outputs {
		if err := out.sendBye(); err != nil {
			return err
		}
	}
	for _, out := range i.outputs {
		if err := out.waitBye(); err != nil {
			return err
		}
	}
	for _, in := range i.inputs {
		if err := in.replyBye(); err != nil {
			return err
		}
	}
	for _, in := range i.inputs {
		in.waitHangup()
	}
	return nil
}

// processWorks connects the instance, and calls the filter for each work.
func (i *instance) processWorks(f Filter) error {
	if err := i.connectStreams(); err != nil {
		i.run.noteConnectError(&FilterError{Instance: i.Instance, Err: err})
		i.run.waitAbort(err)
		return err
	}
	for _, in := range i.inputs {
		in.startReaders(i.run)
	}
	for _, out := range i.outputs {
		out.startReplies(i.run, i.run.plan.needsAcks(out.stream, i.Group), !i.run.plan.isPipeline[i.Group])
	}
	i.start = time.Now()
	defer func() { i.end = time.Now() }()
	return i.run.plan.forEachWork(i.Group, func(number int, query []byte) error {
		for _, in := range i.inputs {
			in.startWork(number)
		}
		w := &Work{Instance: i.Instance, Number: number, Query: query, inputs: i.inputs, outputs: i.outputs}
		if err := f.Process(i.run.ctx, w); err != nil {
			return fmt.Errorf("work %d: %w", number, err)
		}
		if err := i.skipInputs(); err != nil {
			return err
		}
		for _, out := range i.outputs {
			if err := out.endWork(number); err != nil {
				return err
			}
		}
		return context.Cause(i.run.ctx)
	})
}

// skipInputs reads the units of a work that the filter has not read, from all inputs concurrently: a producer
// of several streams may wait for space in one of them.
func (i *instance) skipInputs() error {
	errs := make([]error, len(i.inputs))
	var wg sync.WaitGroup
	for n, in := range i.inputs {
		if n > 0 {
			wg.Go(func() { errs[n] = in.skipRest() })
		}
	}
	if len(i.inputs) > 0 {
		errs[0] = i.inputs[0].skipRest()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// buildReport returns the instance's counts. An instance with inputs starts when the first data arrives.
func (i *instance) buildReport() Report {
	r := InstanceReport{Instance: i.Instance}
	start := i.start
	for n, in := range i.inputs {
		if n == 0 || in.first.Before(start) {
			start = in.first
		}
		for _, l := range in.links {
			r.In.addLink(l)
		}
	}
	for _, out := range i.outputs {
		for _, l := range out.links {
			r.Out.addLink(l)
		}
	}
	return Report{Start: start, End: i.end, Instances: []InstanceReport{r}}
}

// addLink adds the counts of a connection, which may be nil.
func (c *Counts) addLink(l *link) {
	if l != nil {
		c.Units += l.total.Units
		c.Bytes += l.total.Bytes
	}
}
