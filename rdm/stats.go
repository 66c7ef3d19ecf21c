package rdm

import (
	"iter"

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

// Dropped are numbers of packets that were dropped, by reason.
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
	s.addCore(&e.core.Stats)
	for _, p := range e.byIncarnation {
		if p.state == open {
			s.Peers++
		}
	}
	return s
}

// addCore sets the counters of the NACK protocol.
func (s *Stats) addCore(c *nack.Stats) {
	s.Sent, s.Delivered, s.Packets, s.Retransmitted = c.Sent, c.Delivered, c.Packets, c.Retransmitted
	s.Probes, s.Acks, s.Nacks, s.NacksReceived, s.OutOfOrder = c.Probes, c.Acks, c.Nacks, c.NacksReceived, c.OutOfOrder
	s.Restarts, s.TimedOut, s.ProtocolErrors = c.Restarts, c.TimedOut, c.ProtocolErrors
	s.Dropped = Dropped{
		Malformed:        c.Dropped[nack.DropMalformed],
		TooLong:          c.Dropped[nack.DropTooLong],
		StaleDestination: c.Dropped[nack.DropStaleDestination],
		OldEpoch:         c.Dropped[nack.DropOldEpoch],
		PeerClosed:       c.Dropped[nack.DropPeerClosed],
		Duplicate:        c.Dropped[nack.DropDuplicate],
		TooFar:           c.Dropped[nack.DropTooFar],
		NoMemory:         c.Dropped[nack.DropNoMemory],
		UnsentAck:        c.Dropped[nack.DropUnsentAck],
		Inconsistent:     c.Dropped[nack.DropInconsistent],
	}
}

// All returns an iterator over the names and values of all counters: "sent", "peers",
// "unknown_senders" and so on.
func (s Stats) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for _, c := range []struct {
			name  string
			value uint64
		}{
			{"peers", uint64(s.Peers)}, {"sent", s.Sent}, {"delivered", s.Delivered}, {"packets", s.Packets},
			{"retransmitted", s.Retransmitted}, {"probes", s.Probes}, {"acks", s.Acks}, {"nacks", s.Nacks},
			{"nacks_received", s.NacksReceived}, {"out_of_order", s.OutOfOrder}, {"restarts", s.Restarts},
			{"timed_out", s.TimedOut}, {"protocol_errors", s.ProtocolErrors},
			{"dropped_malformed", s.Dropped.Malformed},
			{"dropped_too_long", s.Dropped.TooLong},
			{"dropped_stale_destination", s.Dropped.StaleDestination},
			{"dropped_old_epoch", s.Dropped.OldEpoch},
			{"dropped_peer_closed", s.Dropped.PeerClosed},
			{"dropped_duplicate", s.Dropped.Duplicate},
			{"dropped_too_far", s.Dropped.TooFar},
			{"dropped_no_memory", s.Dropped.NoMemory},
			{"dropped_unsent_ack", s.Dropped.UnsentAck},
			{"dropped_inconsistent", s.Dropped.Inconsistent},
			{"unknown_senders", s.UnknownSenders}, {"forged", s.Forged}, {"refused", s.Refused},
			{"backlog_drops", s.BacklogDrops}, {"malformed", s.Malformed}, {"served", s.Served}, {"denied", s.Denied},
		} {
			if !yield(c.name, c.value) {
				return
			}
		}
	}
}
