package mpibench

import (
	"slices"

	"github.com/softrnic/softrnic/mpi"
)

// A Transport is the transport of MPI, and the name of its series.
type Transport string

// The transports of messages. The adapter executes operations on windows, or with TCP the
// reader of the connection. Collective calls use messages, except those of Shared.
const (
	Fast   Transport = "mpi-fast"   // RDMA writes into polled memory for short messages
	RDMA   Transport = "mpi-rdma"   // sends and receives; all transports but TCP use RDMA reads for long messages
	Shared Transport = "mpi-shared" // RDMA, and shared memory for short collective calls: MPI's default
	UD     Transport = "mpi-ud"     // datagrams over one queue pair; as Hybrid, without shared memory
	Hybrid Transport = "mpi-hybrid" // RDMA to Config.RCLimit ranks, UD to the others
	TCP    Transport = "mpi-tcp"
)

// Transports whose operations on windows are messages as well.
const (
	FastMessages Transport = "mpi-fast-messages"
	RDMAMessages Transport = "mpi-rdma-messages"
)

// Transports returns the transports of messages.
func Transports() []Transport { return []Transport{Fast, RDMA, Shared, UD, Hybrid, TCP} }

// WindowTransports returns the transports that differ in operations on windows.
func WindowTransports() []Transport { return []Transport{RDMA, FastMessages, RDMAMessages, TCP} }

// mpiOptions returns the options of a rank, or false if c is unknown.
func (c Transport) mpiOptions() (o mpi.Options, ok bool) {
	o.NoShared = c != Shared
	switch c {
	case Fast, FastMessages:
		o.RDMA = mpi.RDMAOptions{Fast: true}
	case RDMA, RDMAMessages, Shared:
	case UD:
		o.Net = mpi.UD
	case Hybrid:
		o.Net = mpi.Hybrid
	case TCP:
		o.Net = mpi.TCP
	default:
		return o, false
	}
	if c == FastMessages || c == RDMAMessages {
		o.OneSided = mpi.Messages
	}
	return o, true
}

// allTransports returns the transports of both kinds.
func allTransports() []Transport {
	list := append(Transports(), WindowTransports()...)
	slices.Sort(list)
	return slices.Compact(list)
}
