package rdm

import (
	"iter"

	"github.com/softrnic/softrnic/internal/counters"
	"github.com/softrnic/softrnic/internal/nack"
)

// Stats are the counters of an Endpoint.
type Stats struct {
	Peers int // connected peers, the current number

	Sent, Delivered        uint64 // messages
	Packets, Retransmitted uint64 // data packets sent for the first time, and again
	Probes, Acks, Nacks    uint64 // sent
	NacksReceived          uint64
	OutOfOrder             uint64 // packets buffered out of order
	Restarts               uint64 // peers that restarted
	TimedOut               uint64 // peers that did not respond for Options.GiveUp
	ProtocolErrors         uint64 // peers that violated the packet protocol
	Dropped                Dropped

	UnknownSenders uint64 // datagrams of unknown senders
	Forged         uint64 // handshakes whose address is not their source
	Refused        uint64 // peers rejected by Options.Allow
	BacklogDrops   uint64 // packets dropped because Options.Backlog was exhausted
	Malformed      uint64 // violations of the message protocol; the peer fails
	Served         uint64 // operations of peers
	Denied         uint64 // operations of peers that failed
}

// Dropped are numbers of packets that were dropped, by reason, in the order of nack.Drops.
type Dropped struct {
	Malformed        uint64 // not a packet of the protocol, or an invalid header
	TooLong          uint64 // the message exceeds the limit
	StaleDestination uint64 // addressed to another incarnation of the endpoint
	OldEpoch         uint64 // from an earlier incarnation of the peer
	PeerClosed       uint64 // the peer is closed or failed
	Duplicate        uint64 // received before
	TooFar           uint64 // beyond the receive window
	NoMemory         uint64 // out of order, and the memory for such packets is exhausted
	UnsentAck        uint64 // acknowledges packets that were not sent
	Inconsistent     uint64 // contradicts earlier fragments of its message
}

// Stats returns a snapshot of the counters.
func (e *Endpoint) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	counters.Add(&s, e.core.Stats)
	counters.Set(&s.Dropped, e.core.Stats.Dropped[nack.DropMalformed:])
	for _, p := range e.byIncarnation {
		if p.state == open {
			s.Peers++
		}
	}
	return s
}

// All returns an iterator over the names and values of all counters: "sent", "peers",
// "unknown_senders" and so on.
func (s Stats) All() iter.Seq2[string, uint64] { return counters.All(s) }
