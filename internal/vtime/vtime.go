// Package vtime is the clock, the timers and the goroutines of code that also runs on the
// simulated hosts of package cluster. Outside of a simulation its functions are those of
// packages time, context and sync:
//
//	timer := vtime.AfterFunc(d, f)              // time.AfterFunc
//	var work vtime.Group                        // sync.WaitGroup
//	work.Go(f)
//	vtime.WaitUntil(func() bool { return len(wake) > 0 || ctx.Err() != nil }) // nothing
//	select {
//	case <-wake:
//	case <-ctx.Done():
//	}
//
// On a simulated host, a goroutine is a coroutine of the simulation, time is virtual, and WaitUntil
// returns when the following select does not block. A goroutine that blocks there in any other
// way blocks the whole simulation, so WaitUntil is called before each operation that may block, with
// no lock held that another goroutine of the host takes.
//
// Code learns that it runs on a simulated host from a variable, not from its caller: while a
// simulation runs, one goroutine at a time does, and no other goroutine of the process may use
// this package.
package vtime

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A Host is a simulated host. Its methods are called by its own code only.
type Host interface {
	// Now returns the time since the start of the simulation in nanoseconds.
	Now() int64

	// Go calls f in a new goroutine of the host.
	Go(f func())

	// CallAfter calls f in a new goroutine of the host after d nanoseconds, unless stop is called
	// before, which reports whether it prevented the call.
	CallAfter(d int64, f func()) (stop func() bool)

	// ChargeCopies adds the time of copies of the given number of blocks and bytes to the work of
	// the host's processor.
	ChargeCopies(blocks, bytes int)

	// WaitUntil blocks the calling goroutine until ready returns true. ready is called after each
	// event of the host.
	WaitUntil(ready func() bool)
}

// current is the host whose code runs, nil outside of a simulation.
var current atomic.Pointer[Host]

// EnterHost makes h, or no host if it is nil, the host of the code that runs until the next EnterHost. It
// returns the host before, or nil.
func EnterHost(h *Host) (before *Host) { return current.Swap(h) }

// OnSimulatedHost reports whether the caller runs on a simulated host.
func OnSimulatedHost() bool { return current.Load() != nil }

// epoch is the date at which all simulations start.
var epoch = time.Unix(0, 0)

// Now is time.Now.
func Now() time.Time {
	if h := current.Load(); h != nil {
		return epoch.Add(time.Duration((*h).Now()))
	}
	return time.Now()
}

// Since is time.Since.
func Since(t time.Time) time.Duration {
	if h := current.Load(); h != nil {
		return Now().Sub(t)
	}
	return time.Since(t)
}

// WaitUntil blocks a goroutine of a simulated host until ready returns true. It returns at once
// otherwise. ready has no side effects.
func WaitUntil(ready func() bool) {
	if h := current.Load(); h != nil && !ready() {
		(*h).WaitUntil(ready)
	}
}

// ChargeCopies tells a simulated host that its processor has copied blocks of memory, bytes in
// all, which takes no virtual time otherwise.
func ChargeCopies(blocks, bytes int) {
	if h := current.Load(); h != nil {
		(*h).ChargeCopies(blocks, bytes)
	}
}

// Go calls f in a new goroutine.
func Go(f func()) {
	if h := current.Load(); h != nil {
		(*h).Go(f)
	} else {
		go f()
	}
}

// A Group is a sync.WaitGroup. Its zero value is ready for use.
type Group struct {
	real      sync.WaitGroup
	simulated int // number of goroutines
}

// Go calls f in a new goroutine of the group.
func (g *Group) Go(f func()) {
	h := current.Load()
	if h == nil {
		g.real.Go(f)
		return
	}
	g.simulated++
	(*h).Go(func() {
		defer func() { g.simulated-- }()
		f()
	})
}

// Wait waits for the goroutines of the group.
func (g *Group) Wait() {
	WaitUntil(func() bool { return g.simulated == 0 })
	g.real.Wait()
}

// WaitDone is WaitUntil until a channel of a context or the like is closed or has a value. It
// receives nothing.
func WaitDone(ctx context.Context) { WaitUntil(func() bool { return ctx.Err() != nil }) }

// IsClosed reports whether a channel that is never sent to is closed, for ready functions of
// WaitUntil.
func IsClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
