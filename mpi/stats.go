package mpi

import (
	"iter"

	"github.com/softrnic/softrnic/internal/counters"
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
	ReceiveBuffers   uint64 // posted receive buffers, the current number; none with FlowRDMA and FlowNIC
	PacketMemory     uint64 // bytes of receive buffers, and of the rings of FlowRDMA and FlowNIC, the current number
	Rails            uint64 // additional queue pairs of RDMAOptions.Rails, the current number
	Stripes          uint64 // parts of messages that were read or written over rails
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
	Drops             map[string]uint64 `counter:"dropped"` // packets dropped, by reason
}

// Stats returns a snapshot of the counters of this rank.
func (w World) Stats() (s Stats) {
	if w.isNull() {
		return Stats{}
	}
	fab := w.base.Engine.Fabric()
	w.base.Engine.Do(func(core *protocol.Core) {
		counters.Add(&s, core.Stats)
		if fab != nil {
			f := fab.Stats()
			counters.Add(&s, f)
			s.Drops = f.Drops
		}
	})
	return s
}

// All returns an iterator over the names and values of all counters: "eager", "credit_packets",
// "dropped_duplicate" and so on.
func (s Stats) All() iter.Seq2[string, uint64] { return counters.All(s) }
