package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/softrnic/softrnic/internal/link/memory"
)

// epoch is the start of the clock, because adapters take time 0 for never.
// Times that a Sim returns are relative to it.
const epoch = 1

// maxRunTime is the maximum virtual time of Run.
const maxRunTime = time.Minute

// maxRounds is the maximum number of times that adapters have work without time
// passing; more is taken for a livelock.
const maxRounds = 100_000

// A Sim is a network of adapters with a virtual clock. It belongs to one
// goroutine.
type Sim struct {
	seed    uint64
	net     *memory.Network
	devices []*Device
	trace   *Trace // nil unless recording
}

// New returns a network without adapters, at time 0.
func New(seed uint64) *Sim {
	s := &Sim{seed: seed, net: memory.New(seed)}
	s.net.AdvanceTo(epoch)
	return s
}

// Rand returns the random source of the test program. Adapters and impairments
// have their own.
func (s *Sim) Rand() *rand.Rand { return s.net.Rand() }

// Network returns the network, for ends without an adapter.
func (s *Sim) Network() *memory.Network { return s.net }

// Now returns the time since the start.
func (s *Sim) Now() time.Duration { return time.Duration(s.net.Now() - epoch) }

// Devices returns the adapters in the order they were added.
func (s *Sim) Devices() []*Device { return s.devices }

// wakeAll makes every adapter and application run.
func (s *Sim) wakeAll() {
	for _, d := range s.devices {
		d.wakePending = true
	}
}

// Run lets time pass until the given function, which is called after every
// event, returns true; then it returns true. It returns false when no event is
// left, or after maxRunTime. With a nil function it runs until no event is
// left, and returns true.
func (s *Sim) Run(until func() bool) bool {
	s.wakeAll()
	end := s.net.Now() + int64(maxRunTime)
	for {
		s.runUntilIdle()
		if until != nil && until() {
			return true
		}
		if moved, more := s.advanceToNext(end); !moved {
			return until == nil && !more
		}
	}
}

// RunFor lets the given time pass.
func (s *Sim) RunFor(d time.Duration) {
	s.wakeAll()
	end := s.net.Now() + int64(d)
	for {
		s.runUntilIdle()
		if moved, _ := s.advanceToNext(end); !moved {
			s.net.AdvanceTo(end)
			s.runUntilIdle()
			return
		}
	}
}

// advanceToNext moves the clock to the next event, unless that is after end. It
// reports whether it did, and whether there is such an event at all.
func (s *Sim) advanceToNext(end int64) (moved, more bool) {
	next, ok := s.net.NextEvent()
	for _, d := range s.devices {
		if t := d.nextEvent(); t != 0 && (!ok || t < next) {
			next, ok = t, true
		}
	}
	if !ok || next > end {
		return false, ok
	}
	s.net.AdvanceTo(next)
	return true, true
}

// runUntilIdle runs adapters and applications until none has work without time
// passing.
func (s *Sim) runUntilIdle() {
	for round := 0; ; round++ {
		idle := true
		now := s.net.Now()
		for _, d := range s.devices {
			if d.hasWork(now) {
				d.runUntilIdle()
				idle = false
			}
		}
		if idle {
			return
		}
		if round == maxRounds {
			panic(fmt.Sprintf("sim: seed %d: adapters not idle at %v", s.seed, s.Now()))
		}
	}
}
