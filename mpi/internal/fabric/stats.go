package fabric

// Stats are the counters of a fabric, which mpi.Stats documents. A fabric sets those that it
// has.
type Stats struct {
	Connections, Packets, Coalesced, CreditPackets uint64
	Registrations, RegistrationHits                uint64
	ReceiveBuffers, Rails, Stripes, Queues         uint64
	DatagramStats
}

// DatagramStats are the counters of datagrams.
type DatagramStats struct {
	Datagrams, Retransmitted, Probes, Acks, Nacks, NacksReceived uint64
	OutOfOrder, DatagramsSent, DatagramsReceived                 uint64
	AddressHandles, UnknownSenders, Malformed                    uint64
	Drops                                                        map[string]uint64
}
