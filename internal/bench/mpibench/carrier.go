package mpibench

import (
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/fabric/rdma"
)

// A Carrier is what messages of MPI go over; it also is the name of its series.
type Carrier string

// The carriers.
const (
	Fast Carrier = "mpi-fast" // RDMA writes into memory that is polled, for short messages
	RDMA Carrier = "mpi-rdma" // sends and receives; in all carriers but TCP long messages are read
	TCP  Carrier = "mpi-tcp"
)

// Carriers are those there are.
func Carriers() []Carrier { return []Carrier{Fast, RDMA, TCP} }

// options are those of a rank.
func (c Carrier) options() (o mpi.Options, ok bool) {
	switch c {
	case Fast:
		o.RDMA = rdma.Options{Fast: true}
	case RDMA:
	case TCP:
		o.Net = mpi.TCP
	default:
		return o, false
	}
	return o, true
}
