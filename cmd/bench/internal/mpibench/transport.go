package mpibench

import (
	"slices"

	"github.com/softrnic/softrnic/mpi"
)

// A Transport is what MPI goes over; it also is the name of its series.
type Transport string

// The carriers of messages. Operations on windows are done by the adapter itself,
// or by what reads the connection of TCP. Collective calls are messages, but for those
// of Shared.
const (
	Fast   Transport = "mpi-fast"   // RDMA writes into memory that is polled, for short messages
	RDMA   Transport = "mpi-rdma"   // sends and receives; in all carriers but TCP long messages are read
	Shared Transport = "mpi-shared" // RDMA, and short collective calls in memory that ranks have in common: MPI's default
	TCP    Transport = "mpi-tcp"
)

// Carriers whose operations on windows are messages as well.
const (
	FastMessages Transport = "mpi-fast-messages"
	RDMAMessages Transport = "mpi-rdma-messages"
)

// Transports are those of messages.
func Transports() []Transport { return []Transport{Fast, RDMA, Shared, TCP} }

// WindowTransports are those that differ in how operations on windows are done.
func WindowTransports() []Transport { return []Transport{RDMA, FastMessages, RDMAMessages, TCP} }

// mpiOptions are those of a rank.
func (c Transport) mpiOptions() (o mpi.Options, ok bool) {
	o.NoShared = c != Shared
	switch c {
	case Fast, FastMessages:
		o.RDMA = mpi.RDMAOptions{Fast: true}
	case RDMA, RDMAMessages, Shared:
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

// allTransports are the carriers of either kind.
func allTransports() []Transport {
	list := append(Transports(), WindowTransports()...)
	slices.Sort(list)
	return slices.Compact(list)
}
