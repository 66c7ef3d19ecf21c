package cluster

import (
	"time"

	"github.com/softrnic/softrnic/internal/deadline"
	"github.com/softrnic/softrnic/internal/vtime"
)

// A Host is a simulated computer with a processor, an adapter and goroutines. It implements
// vtime.Host.
type Host struct {
	cluster   *Cluster
	number    int
	self      vtime.Host
	next      deadline.Entry[int64] // in Cluster.due
	processor *processor
	adapter   *adapter // nil before OpenDevice

	active    *coroutine   // that runs now, nil while the adapter does
	start     []func()     // goroutines to start
	blocked   []*coroutine // in the order in which they began to wait
	timers    deadline.Heap[int64, *timer]
	resumeDue bool // a condition of a blocked goroutine may have become true
	pollDue   bool // the adapter may have packets to send

	process process // of a host that shares its processor
}

var _ vtime.Host = (*Host)(nil)

// HostNumber returns the index of the host.
func (h *Host) HostNumber() int { return h.number }

// Now implements vtime.Host.
func (h *Host) Now() int64 {
	if h.active == nil {
		return h.cluster.net.Now()
	}
	return max(h.cluster.net.Now(), h.processor.freeAt)
}

// ChargeTime adds processor time to the work of the host.
func (h *Host) ChargeTime(d time.Duration) { h.addWork(int64(d)) }

func (h *Host) addWork(ns int64) {
	h.processor.freeAt = max(h.processor.freeAt, h.cluster.net.Now()) + ns
}

// ChargeCopies implements vtime.Host.
func (h *Host) ChargeCopies(blocks, bytes int) {
	c := &h.cluster.options.Costs
	h.addWork(int64(blocks)*int64(c.CopyBlock) + int64(c.CopyByte*float64(bytes)))
}

// ComputeFor occupies the processor for the given time, after which the calling goroutine continues.
func (h *Host) ComputeFor(d time.Duration) {
	h.addWork(int64(d))
	end := h.processor.freeAt
	vtime.WaitUntil(func() bool { return h.cluster.net.Now() >= end })
}

// Go implements vtime.Host.
func (h *Host) Go(f func()) {
	h.start = append(h.start, f)
	h.wakeGoroutines()
}

// wakeGoroutines makes the host check the conditions of its blocked goroutines.
func (h *Host) wakeGoroutines() {
	h.resumeDue = true
	h.cluster.scheduleHost(h, h.cluster.net.Now())
}

// A timer is a function to call at a time.
type timer struct {
	entry deadline.Entry[int64]
	f     func()
}

// CallAfter implements vtime.Host.
func (h *Host) CallAfter(d int64, f func()) (stop func() bool) {
	t := &timer{f: f}
	at := h.Now() + max(d, 0)
	h.timers.Set(&t.entry, t, at)
	h.cluster.scheduleHost(h, at)
	return func() bool {
		set := t.entry.At() != 0
		h.timers.Remove(&t.entry)
		return set
	}
}

// startTimers starts the functions of the timers that are due.
func (h *Host) startTimers(now int64) {
	for t := h.timers.PopDue(now); t != nil; t = h.timers.PopDue(now) {
		h.start = append(h.start, t.f)
		h.resumeDue = true
	}
}

// runStep polls the adapter or runs goroutines, and reports whether there may be more to do now.
func (h *Host) runStep(now int64) bool {
	p, software := h.processor, h.cluster.options.Costs.Software
	if !software && h.adapter != nil && h.adapter.hasWork(now) {
		h.adapter.pollUntilIdle()
		h.resumeDue = true
	}
	if p.freeAt > now {
		return false
	}
	h.startTimers(now)
	if h.resumeDue {
		h.resumeDue = h.resumeReady(now)
		h.pollDue = h.pollDue || h.resumeDue
		return true
	}
	if h.adapter == nil || !h.pollDue && !h.adapter.hasWork(now) {
		return false
	}
	h.resumeDue, h.pollDue = h.adapter.hasWork(now), false // an expired timer may complete requests
	if h.adapter.pollOnce() > 0 {
		h.resumeDue, h.pollDue = true, true
	}
	return true
}

// scheduleNext schedules the next run of the host after one at the given time.
func (h *Host) scheduleNext(now int64) {
	c, free := h.cluster, h.processor.freeAt
	if at := h.timers.Next(); at != 0 {
		c.scheduleHost(h, max(at, free))
	}
	if free > now && (h.resumeDue || h.pollDue) {
		c.scheduleHost(h, free)
	}
	if h.adapter == nil {
		return
	}
	at := h.adapter.nextTimer()
	if h.adapter.Readable() {
		at = now
	}
	switch {
	case at == 0:
	case c.options.Costs.Software:
		c.scheduleHost(h, max(at, free))
	default:
		c.scheduleHost(h, max(at, now+1)) // due ones have been handled
	}
}

// WaitUntil implements vtime.Host.
func (h *Host) WaitUntil(ready func() bool) {
	co := h.active
	co.ready = ready
	h.blocked = append(h.blocked, co)
	co.blockFunc()
}

// resumeReady starts new goroutines and resumes those whose condition is true, and reports whether
// there were any. It stops when the processor has become busy.
func (h *Host) resumeReady(now int64) (ran bool) {
	for i := 0; h.processor.freeAt <= now; {
		switch {
		case len(h.start) > 0:
			f := h.start[0]
			h.start = h.start[:copy(h.start, h.start[1:])]
			h.cluster.coroutines.startFunc(h, f)
		case i < len(h.blocked):
			co := h.blocked[i]
			if !co.ready() {
				i++
				continue
			}
			h.blocked = append(h.blocked[:i], h.blocked[i+1:]...)
			co.resumeFunc()
		default:
			return ran
		}
		ran, i = true, 0
	}
	return true
}
