package acp

import (
	"iter"

	"github.com/softrnic/softrnic/internal/counters"
)

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
	s := Stats{DirectMessages: p.channels.directMessages}
	counters.Add(&s, p.net.Stats())
	return s
}

// All returns an iterator over the names and values of all counters: "operations", "stray_signals" and so
// on.
func (s Stats) All() iter.Seq2[string, uint64] { return counters.All(s) }
