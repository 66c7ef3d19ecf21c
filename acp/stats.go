package acp

import "iter"

// Stats are the counters of a Process. Counters of a transport that the process does not use are 0.
type Stats struct {
	Operations     uint64 // operations on memory of other ranks
	Signals        uint64 // signals received
	StraySignals   uint64 // signals received from a peer that is not a connected rank, or is lost
	Connections    uint64 // connected ranks, the current number
	Connects       uint64 // connections requested, RC only
	Repaired       uint64 // connections replaced after a target refused an operation, RC only
	Receives       uint64 // posted receives for signals, the current number, RC only
	DirectMessages uint64 // messages written by the sender into a receive buffer
}

// Stats returns a snapshot of the counters.
func (p *Process) Stats() Stats {
	if p.isNull() {
		return Stats{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.net.Stats()
	return Stats{
		Operations: f.Operations, Signals: f.Signals, StraySignals: f.StraySignals, Connections: f.Connections,
		Connects: f.Connects, Repaired: f.Repaired, Receives: f.Receives, DirectMessages: p.channels.directMessages,
	}
}

// All returns an iterator over the names and values of all counters: "operations", "stray_signals" and so
// on.
func (s Stats) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for _, c := range []struct {
			name  string
			value uint64
		}{
			{"operations", s.Operations}, {"signals", s.Signals}, {"stray_signals", s.StraySignals},
			{"connections", s.Connections}, {"connects", s.Connects}, {"repaired", s.Repaired},
			{"receives", s.Receives}, {"direct_messages", s.DirectMessages},
		} {
			if !yield(c.name, c.value) {
				return
			}
		}
	}
}
