package cm

import (
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/wire/mad"
)

// Stats are the counters of a Manager.
type Stats struct {
	protocol.Stats
	Foreign uint64 // datagrams whose source is not a queue pair 1
	Unsent  uint64 // messages that could not be sent
}

// Stats returns a snapshot of the counters.
func (m *Manager) Stats() Stats {
	m = m.orClosed()
	m.mu.Lock()
	defer m.mu.Unlock()
	return Stats{Stats: m.machine.Stats(), Foreign: m.foreign, Unsent: m.unsent}
}

// A counterRegistry is a device that publishes counters of the layers above it, as package rnic's
// does.
type counterRegistry interface {
	AddLayer(name string, each func(yield func(name string, value uint64, level bool))) (remove func())
}

// registerCounters adds the manager's counters to the device's, if the device supports that, and
// returns a function that removes them.
func (m *Manager) registerCounters() (hide func()) {
	dev, ok := m.dev.(counterRegistry)
	if !ok {
		return func() {}
	}
	return dev.AddLayer("cm", func(yield func(string, uint64, bool)) {
		s := m.Stats()
		s.Each(func(name string, value uint64) { yield(name, value, gauges[name]) })
	})
}

// gauges are the names of the current values among the counters.
var gauges = map[string]bool{"connections": true, "half_open": true, "timewait": true, "sidr": true}

// Each calls f with the name and value of every counter: "sent_req", "dropped_unknown_id",
// "connections" and so on.
func (s *Stats) Each(f func(name string, value uint64)) {
	for i := range protocol.NumMessages {
		name := strings.ToLower((mad.AttrREQ + mad.Attr(i)).String())
		f("sent_"+name, s.Sent[i])
		f("received_"+name, s.Received[i])
	}
	for d := mad.DropNone + 1; d < mad.NumDrops; d++ {
		f(fmt.Sprintf("malformed_%v", d), s.Malformed[d])
	}
	for d := protocol.DropNone + 1; d < protocol.NumDrops; d++ {
		f(fmt.Sprintf("dropped_%v", d), s.Dropped[d])
	}
	for _, c := range []struct {
		name  string
		value uint64
	}{
		{"foreign", s.Foreign}, {"unsent", s.Unsent}, {"repeated", s.Repeated}, {"timed_out", s.TimedOut},
		{"evicted", s.Evicted}, {"requests", s.Requests}, {"connected", s.Connected}, {"rejected", s.Rejected},
		{"connections", uint64(s.Connections)}, {"half_open", uint64(s.HalfOpen)}, {"timewait", uint64(s.Timewait)},
		{"sidr", uint64(s.SIDR)},
	} {
		f(c.name, c.value)
	}
}
