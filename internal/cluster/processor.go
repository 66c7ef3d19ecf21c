package cluster

import (
	"time"

	"github.com/softrnic/softrnic/internal/vtime"
)

// A processor runs one host at a time. A shared one has the scheduling of processes: a host that
// waits polls its socket, yields to the other hosts, and sleeps after some time, as package sched
// decides, and a host that is woken runs before those that have yielded.
type processor struct {
	freeAt int64 // end of the work that was charged

	isShared bool
	current  *Host   // that runs
	last     *Host   // that has run before
	hosts    []*Host // all
	turns    uint64  // number of times that a host was continued
	woken    []*Host // that run next, in the order in which they were woken
	yielded  []*Host // that run after them, in turn
}

// A process is the state of a host that shares its processor.
type process struct {
	queued bool   // by the processor
	asleep bool   // since it has run last
	slept  int64  // the time at which it fell asleep
	turn   uint64 // of the processor, in which the host has run last

	nextTick, lastTick int64  // times of the next and the last check of the runtime's monitor
	turns              uint64 // number of times that the processor has continued the host
	runs               uint64 // number of times that goroutines of the host have run

	// Goroutines that wait for the processor or for a packet, and poll the device themselves.
	polling, yielding int
}

// runHosts queues h if it has work, and runs the hosts of the processor in turn until it is busy or
// none has work.
func (p *processor) runHosts(h *Host, now int64) {
	if p.current != h && !h.process.queued && h.hasWork(now) {
		p.woken = append(p.woken, h)
		h.process.queued = true
	}
	for p.freeAt <= now {
		if p.runMonitors(now) {
			continue
		}
		switch h := p.current; {
		case h == nil && !p.startNext(now):
			return
		case h != nil && !h.runAsProcess(now):
			p.suspendCurrent(now)
		}
	}
	for _, h := range []*Host{p.current, firstOf(p.woken), firstOf(p.yielded)} {
		if h != nil {
			h.cluster.scheduleHost(h, p.freeAt)
			return
		}
	}
}

func firstOf(hosts []*Host) *Host {
	if len(hosts) == 0 {
		return nil
	}
	return hosts[0]
}

// startNext continues the next host, and reports whether there is one.
func (p *processor) startNext(now int64) bool {
	from := &p.woken
	if len(*from) == 0 {
		from = &p.yielded
	}
	if len(*from) == 0 {
		return false
	}
	h := (*from)[0]
	*from = (*from)[:copy(*from, (*from)[1:])]
	costs, ns := &h.cluster.options.Costs, int64(0)
	switch {
	case h.process.asleep:
		ns = int64(costs.Wake)
		if costs.LongSleep > 0 && now-h.process.slept >= int64(costs.LongSleep) {
			ns += int64(costs.Reacquire)
			h.process.lastTick = now + monitorTicks*int64(costs.LongSleep)
		}
	case p.last != h:
		ns = int64(costs.Switch)
	}
	others := p.turns - h.process.turn // turns of other hosts
	if others > 1 {
		ns += int64(min(others, coldHosts, uint64(len(p.hosts)-1))-1) * int64(costs.Cold)
	}
	p.turns++
	h.process.turn = p.turns
	p.freeAt = max(p.freeAt, now) + ns
	p.current, p.last = h, h
	h.process.queued, h.process.asleep = false, false
	h.process.turns++
	return true
}

// coldHosts is the number of other hosts after which a processor's caches hold nothing of a host:
// with more of them, the costs of a switch do not grow.
const coldHosts = 7

// monitorTicks is the number of checks without a long sleep after which the monitor of Go's runtime
// makes its pauses longer.
const monitorTicks = 50

// runMonitors charges the checks of the hosts' monitors that are due, and reports whether there are
// any.
func (p *processor) runMonitors(now int64) (ran bool) {
	for _, h := range p.hosts {
		c := &h.cluster.options.Costs
		every := int64(c.LongSleep)
		if every == 0 || h.process.lastTick == 0 {
			continue
		}
		if h.process.nextTick < now-every { // the processor was idle
			h.process.nextTick = now - every
		}
		for ; h.process.nextTick <= now && h.process.nextTick <= h.process.lastTick; h.process.nextTick += every {
			p.freeAt = max(p.freeAt, now) + int64(c.MonitorTick)
			ran = c.MonitorTick > 0
		}
	}
	return ran
}

// suspendCurrent ends the turn of the host that runs.
func (p *processor) suspendCurrent(now int64) {
	h := p.current
	p.current = nil
	if h.process.yielding > 0 {
		p.yielded = append(p.yielded, h)
		h.process.queued = true
		return
	}
	h.process.asleep, h.process.slept = true, now
	if at := h.timers.Next(); at != 0 {
		h.cluster.scheduleHost(h, max(at, now+1))
	}
	if h.adapter == nil {
		return
	}
	if at := h.adapter.nextTimer(); at != 0 {
		h.cluster.scheduleHost(h, max(at, now+1))
	}
}

// hasWork reports whether a host that sleeps has to run.
func (h *Host) hasWork(now int64) bool {
	defer vtime.EnterHost(vtime.EnterHost(&h.self))
	if at := h.timers.Next(); len(h.start) > 0 || at != 0 && at <= now {
		return true
	}
	for _, co := range h.blocked {
		if co.ready() {
			return true
		}
	}
	return h.mustPoll(now)
}

// mustPoll reports whether the adapter has work and no goroutine polls it.
func (h *Host) mustPoll(now int64) bool {
	return h.process.polling == 0 && h.adapter != nil && (h.pollDue || h.adapter.hasWork(now))
}

// runAsProcess runs the goroutines that are ready, or polls the adapter if none of them does, and
// reports whether there was anything to do.
func (h *Host) runAsProcess(now int64) bool {
	defer vtime.EnterHost(vtime.EnterHost(&h.self))
	h.startTimers(now)
	h.resumeDue = false
	switch {
	case h.resumeReady(now):
		h.pollDue = true
	case h.mustPoll(now):
		h.pollDue = h.adapter.pollOnce() > 0
	default:
		return false
	}
	h.process.runs++
	return true
}

// waitForProcessor blocks the calling goroutine, which is about to poll, until the processor has
// done the work that was charged, so that it sees the packets that have arrived meanwhile.
func (h *Host) waitForProcessor() {
	h.process.polling++
	vtime.WaitUntil(func() bool { return h.cluster.net.Now() >= h.processor.freeAt })
	h.process.polling--
}

// yieldProcessor blocks the calling goroutine until the other hosts of the processor that have work
// have run.
func (h *Host) yieldProcessor() {
	h.process.polling++
	h.process.yielding++
	turn := h.process.turns
	vtime.WaitUntil(func() bool { return h.process.turns != turn })
	h.process.yielding--
	h.process.polling--
}

// sleepUntil blocks the calling goroutine until ready returns true, the timeout has passed if it is
// not negative, or another goroutine of the host has run.
func (h *Host) sleepUntil(ready func() bool, timeout time.Duration) {
	h.process.polling++
	runs, end := h.process.runs+1, h.Now()+int64(timeout)
	vtime.WaitUntil(func() bool {
		return ready() || timeout >= 0 && h.cluster.net.Now() >= end || h.process.runs > runs
	})
	h.process.polling--
}
