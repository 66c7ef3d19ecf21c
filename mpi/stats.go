package mpi

import (
	"iter"
	"maps"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Stats are the counters of a rank. Counters of a fabric that the rank does not use are 0.
type Stats struct {
	Eager      uint64 // messages sent to other ranks with their envelope
	Rendezvous uint64 // messages sent to other ranks after the receiver's reply
	Self       uint64 // messages sent to the own rank
	Expected   uint64 // messages that arrived after their receive was posted
	Unexpected uint64 // messages that arrived before their receive was posted
	Early      uint64 // packets that arrived out of order
	Stalled    uint64 // packets that were queued because the fabric was full
	Throttled  uint64 // times that a sender of unexpected messages was throttled
	Repacked   uint64 // messages sent in packets because their memory could not be registered
	Dropped    uint64 // packets of lost ranks, dropped

	// Connections: RDMA, TCP, and the connections of Hybrid.
	Connections      uint64 // connected ranks, the current number
	Packets          uint64 // sent
	Coalesced        uint64 // packets sent together with others
	CreditPackets    uint64 // packets received that only return credits
	Registrations    uint64 // memory regions registered for messages
	RegistrationHits uint64 // messages whose memory was registered already
	ReceiveBuffers   uint64 // posted receive buffers, the current number
	Rails            uint64 // additional queue pairs of RDMAOptions.Rails, the current number
	Stripes          uint64 // parts of messages that were read over rails
	Queues           uint64 // receive queues of collective calls over RDMA, the current number

	// Datagrams: UD, and the datagrams of Hybrid.
	Datagrams         uint64 // data packets sent for the first time
	Retransmitted     uint64 // data packets sent again
	Probes            uint64 // packets sent to request an acknowledgement
	Acks, Nacks       uint64 // acknowledgements sent, without and with missing packets
	NacksReceived     uint64
	OutOfOrder        uint64            // data packets buffered out of order
	DatagramsSent     uint64            // messages sent
	DatagramsReceived uint64            // messages received
	AddressHandles    uint64            // current number
	UnknownSenders    uint64            // packets from senders that are not a rank of the job
	Malformed         uint64            // messages that violate the protocol; their sender is lost
	Drops             map[string]uint64 // packets dropped, by reason
}

// Stats returns a snapshot of the counters of this rank.
func (w World) Stats() (s Stats) {
	if w.isNull() {
		return Stats{}
	}
	fab := w.eng.Fabric()
	w.eng.Do(func(core *protocol.Core) {
		c := &core.Stats
		s = Stats{
			Eager: c.Eager, Rendezvous: c.Rendezvous, Self: c.Self, Expected: c.Expected, Unexpected: c.Unexpected,
			Early: c.Early, Stalled: c.Stalled, Throttled: c.Throttled, Repacked: c.Repacked, Dropped: c.Dropped,
		}
		if fab == nil {
			return
		}
		f := fab.Stats()
		s.Connections, s.Packets, s.Coalesced, s.CreditPackets = f.Connections, f.Packets, f.Coalesced, f.CreditPackets
		s.Registrations, s.RegistrationHits = f.Registrations, f.RegistrationHits
		s.ReceiveBuffers, s.Rails, s.Stripes, s.Queues = f.ReceiveBuffers, f.Rails, f.Stripes, f.Queues
		s.Datagrams, s.Retransmitted, s.Probes, s.Acks, s.Nacks, s.NacksReceived = f.Datagrams, f.Retransmitted, f.Probes, f.Acks, f.Nacks, f.NacksReceived
		s.OutOfOrder, s.DatagramsSent, s.DatagramsReceived = f.OutOfOrder, f.DatagramsSent, f.DatagramsReceived
		s.AddressHandles, s.UnknownSenders, s.Malformed, s.Drops = f.AddressHandles, f.UnknownSenders, f.Malformed, f.Drops
	})
	return s
}

// All returns an iterator over the names and values of all counters: "eager", "credit_packets",
// "dropped_duplicate" and so on.
func (s Stats) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for _, c := range []struct {
			name  string
			value uint64
		}{
			{"eager", s.Eager}, {"rendezvous", s.Rendezvous}, {"self", s.Self}, {"expected", s.Expected},
			{"unexpected", s.Unexpected}, {"early", s.Early}, {"stalled", s.Stalled}, {"throttled", s.Throttled},
			{"repacked", s.Repacked}, {"dropped", s.Dropped},
			{"connections", s.Connections}, {"packets", s.Packets}, {"coalesced", s.Coalesced}, {"credit_packets", s.CreditPackets},
			{"registrations", s.Registrations}, {"registration_hits", s.RegistrationHits}, {"receive_buffers", s.ReceiveBuffers},
			{"rails", s.Rails}, {"stripes", s.Stripes}, {"queues", s.Queues},
			{"datagrams", s.Datagrams}, {"retransmitted", s.Retransmitted}, {"probes", s.Probes}, {"acks", s.Acks}, {"nacks", s.Nacks},
			{"nacks_received", s.NacksReceived}, {"out_of_order", s.OutOfOrder}, {"datagrams_sent", s.DatagramsSent},
			{"datagrams_received", s.DatagramsReceived}, {"address_handles", s.AddressHandles},
			{"unknown_senders", s.UnknownSenders}, {"malformed", s.Malformed},
		} {
			if !yield(c.name, c.value) {
				return
			}
		}
		for _, reason := range slices.Sorted(maps.Keys(s.Drops)) {
			if !yield("dropped_"+reason, s.Drops[reason]) {
				return
			}
		}
	}
}
