package cluster

import (
	"iter"
	"runtime"
)

// A coroutine is a goroutine of a host. It runs one function after another.
type coroutine struct {
	host  *Host
	f     func()      // that it runs, nil while it is idle
	ready func() bool // condition that it waits for

	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

// A coroutinePool has the coroutines of a cluster. Its zero value is empty.
type coroutinePool struct {
	all, idle []*coroutine
}

// startFunc runs f in a coroutine of h until it blocks or returns.
func (p *coroutinePool) startFunc(h *Host, f func()) {
	var co *coroutine
	if n := len(p.idle) - 1; n >= 0 {
		co, p.idle = p.idle[n], p.idle[:n]
	} else {
		co = &coroutine{}
		co.next, co.stop = iter.Pull(co.runFuncs)
		p.all = append(p.all, co)
	}
	co.host, co.f = h, f
	co.resumeFunc()
}

// runFuncs runs the functions of the coroutine.
func (co *coroutine) runFuncs(yield func(struct{}) bool) {
	for co.yield = yield; ; {
		co.f()
		co.f = nil
		if !yield(struct{}{}) {
			return
		}
	}
}

// resumeFunc runs the coroutine until it blocks or its function returns.
func (co *coroutine) resumeFunc() {
	h := co.host
	h.active = co
	co.next()
	h.active = nil
	if co.f == nil {
		co.host = nil
		h.cluster.coroutines.idle = append(h.cluster.coroutines.idle, co)
	}
}

// blockFunc returns when the coroutine is resumed. It does not return after the end of the simulation:
// then only deferred functions of the goroutine run.
func (co *coroutine) blockFunc() {
	if !co.yield(struct{}{}) {
		runtime.Goexit()
	}
}

// stopAll ends all coroutines. Those that are blocked run their deferred functions.
func (p *coroutinePool) stopAll() {
	for _, co := range p.idle {
		co.stop()
	}
	p.idle = nil
}
