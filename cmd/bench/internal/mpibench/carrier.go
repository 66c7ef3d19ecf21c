package mpibench

import (
	"slices"

	"github.com/softrnic/softrnic/mpi"
)

// A Carrier is what MPI goes over; it also is the name of its series.
type Carrier string

// The carriers of messages. Operations on windows are done by the adapter itself,
// or by what reads the connection of TCP. Collective calls are messages, but for those
// of Shared.
const (
	Fast   Carrier = "mpi-fast"   // RDMA writes into memory that is polled, for short messages
	RDMA   Carrier = "mpi-rdma"   // sends and receives; in all carriers but TCP long messages are read
	Shared Carrier = "mpi-shared" // RDMA, and short collective calls in memory that ranks have in common: MPI's default
	TCP    Carrier = "mpi-tcp"
)

// Carriers whose operations on windows are messages as well.
const (
	FastMessages Carrier = "mpi-fast-messages"
	RDMAMessages Carrier = "mpi-rdma-messages"
)

// Carriers are those of messages.
func Carriers() []Carrier { return []Carrier{Fast, RDMA, Shared, TCP} }

// WindowCarriers are those that differ in how operations on windows are done.
func WindowCarriers() []Carrier { return []Carrier{RDMA, FastMessages, RDMAMessages, TCP} }

// options are those of a rank.
func (c Carrier) options() (o mpi.Options, ok bool) {
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

// all are the carriers of either kind.
func all() []Carrier {
	list := append(Carriers(), WindowCarriers()...)
	slices.Sort(list)
	return slices.Compact(list)
}
