package mpi

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/fabric/hybrid"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/fabric/tcp"
	"github.com/softrnic/softrnic/mpi/internal/fabric/ud"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// The range of eager thresholds in bytes. A packet must hold a foundReply.
const (
	minEager = 64
	maxEager = 1 << 20
)

// Rendezvous is the protocol of messages that are longer than the eager threshold.
type Rendezvous uint8

// Rendezvous protocols.
const (
	RendezvousRead  Rendezvous = iota // the receiver reads by RDMA READ
	RendezvousWrite                   // the sender writes by RDMA WRITE
	RendezvousCopy                    // in packets, with a copy at both ends
)

// schemes are the Rendezvous protocols in package protocol.
var schemes = [...]protocol.Scheme{
	RendezvousRead: protocol.RendezvousRead, RendezvousWrite: protocol.RendezvousWrite, RendezvousCopy: protocol.RendezvousCopy,
}

// RDMAOptions configures the transport over reliable connections. The zero value is usable.
type RDMAOptions struct {
	// Eager is the maximum payload of an eager message in bytes, 64 to 1 MiB; 0 is 8 KiB.
	Eager int

	// Rendezvous is the protocol of longer messages.
	Rendezvous Rendezvous

	// Credits is the maximum number of packets in flight from one rank to another, not yet
	// handled; 0 is 64. With FlowRDMA and FlowNIC, the memory of as many packets of Eager bytes
	// is divided between the two rings of a peer.
	Credits int

	// Flow is the flow control of packets. It must be the same on all ranks: a connection to a
	// rank with another one fails. Modes other than FlowShared exclude Fast.
	Flow Flow

	// Receives is the initial number of receive buffers, shared by all ranks, and the number by
	// which it grows; 0 is 128.
	Receives int

	// Sends is the number of send buffers, for packets that are too long to be inline; 0 is 128.
	Sends int

	// Fast lets ranks write short packets into memory that the receiver polls: the RDMA fast
	// path. It needs an adapter that writes the end of a message last. Waiting becomes busy
	// polling: it is for jobs with a core per rank. Net Hybrid ignores it. Init refuses it with a
	// Flow other than FlowShared; SOFTRNIC_MPI_FLOW does not apply then.
	Fast bool

	// FastSize is the maximum length in bytes of a packet on the fast path, with its header,
	// rounded down to a multiple of 64; 0 is 1 KiB. FastPeers is the maximum number of ranks
	// that are polled; the others use SEND; 0 is 16.
	FastSize, FastPeers int

	// Rails is the number of queue pairs between two ranks, over which long transfers are striped,
	// at most 8; 0 is 1. It must be the same on all ranks.
	Rails int

	// Connect are the attributes of the connections. The default timeout is derived from
	// Options.GiveUp.
	Connect verbs.ConnectOptions

	// Retries is the number of retransmissions of a connect request, about twice a second, at
	// most 15. 0 derives it from Options.GiveUp.
	Retries int
}

// Flow is the flow control of the packets between two ranks over RDMA: of short messages, and
// of the control messages of longer ones. The modes except FlowShared are those of Balaji,
// Bhagvat, Panda, Thakur and Gropp, "Advanced Flow-control Mechanisms for the Sockets Direct
// Protocol over InfiniBand"; docs/mpi.md compares them.
type Flow uint8

// Flow control modes.
const (
	FlowShared Flow = iota // a credit per send of short packets together; receives of all peers together
	FlowCredit             // a credit per packet, each in a receive buffer of the peer
	FlowRDMA               // packets back to back in a ring of the peer, whose software reports free bytes
	FlowNIC                // as FlowRDMA, but the adapter waits until the peer has posted a receive
)

// String returns the name of the mode, as in SOFTRNIC_MPI_FLOW.
func (m Flow) String() string { return rdma.Flow(m).String() }

// UDOptions configures the transport over unreliable datagrams. The zero value is usable.
type UDOptions struct {
	// Eager is the maximum payload of an eager message, and of the packets of longer ones, in
	// bytes, at least 64; 0 is about 8 KiB, two datagrams of 4 KiB. At most 32 datagrams are
	// used.
	Eager int

	// Receives is the maximum number of receive buffers for datagrams of all ranks; 0 is 1024. A
	// rank starts with a 16th, but at least 8, and doubles them when few are left. Packets is the
	// maximum number of datagrams to all ranks that are buffered for retransmission; 0 is 1024.
	// Each takes an MTU, or 256 bytes if the datagram is not longer, once it is used.
	Receives, Packets int

	// GiveUp is the time without a reply after which a rank fails. 0 derives it from
	// Options.GiveUp.
	GiveUp time.Duration
}

// TCPOptions configures the TCP transport. The zero value is usable.
type TCPOptions struct {
	Eager  int    // maximum payload of a packet in bytes, 64 to 1 MiB; 0 is 64 KiB
	Queue  int    // maximum length of the send queue of a rank in bytes; 0 is 1 MiB
	Listen string // address to listen at, with port 0; empty is the first of Addrs, or loopback

	// Addrs is a list of addresses in the form of SOFTRNIC_ADDR. If Listen is empty, the rank
	// listens at the first one that this host has, at a free port of its range, or at one
	// chosen by the system if it has no range.
	Addrs string

	// GiveUp is the time without a sign of liveness after which a rank fails; accepting data is
	// one, too. 0 derives it from Options.GiveUp.
	GiveUp time.Duration
}

func (o *Options) rdmaOptions() rdma.Options {
	r := &o.RDMA
	return rdma.Options{Eager: r.Eager, Rendezvous: schemes[r.Rendezvous], Credits: r.Credits, Receives: r.Receives, Sends: r.Sends,
		Flow: rdma.Flow(r.Flow), Fast: r.Fast, FastSize: r.FastSize, FastPeers: r.FastPeers, Rails: r.Rails, Connect: r.Connect, Retries: r.Retries}
}

func (o *Options) udOptions() ud.Options { return ud.Options(o.UD) }

func (o *Options) tcpOptions() tcp.Options { return tcp.Options(o.TCP) }

// openFabric opens the adapter, unless the transport is TCP, and returns the fabric of the rank.
func (o *Options) openFabric(h fabric.Host, open func() (verbs.Device, error)) (fabric.Fabric, io.Closer, error) {
	if o.Net == TCP {
		f, err := tcp.New(h, o.Manager, o.tcpOptions())
		return f, nil, err
	}
	if open == nil {
		return nil, nil, fmt.Errorf("open is nil in a job of several ranks: %w", verbs.ErrInvalid)
	}
	dev, err := open()
	if err == nil {
		err = adapter.CheckDevice(dev)
	}
	if err != nil { // dev may be a typed nil, such as that of rnic.Open
		return nil, nil, err
	}
	var f fabric.Fabric
	switch o.transportsFor(o.Manager.Size()) {
	case coll.ReliableConnections:
		f, err = rdma.New(dev, h, o.Manager, o.rdmaOptions())
	case coll.UnreliableDatagrams:
		f, err = ud.New(dev, h, o.Manager, o.udOptions())
	default:
		f, err = hybrid.New(dev, h, o.Manager, hybrid.Options{Limit: o.RCLimit, RDMA: o.rdmaOptions(), UD: o.udOptions()})
	}
	return f, dev, err
}

// validate returns an error if a field is out of range. The zero value of a field is its default.
func (o *Options) validate() error {
	const receives = 1 << 14 // of a rank, and work requests of a queue
	for _, f := range []struct {
		name      string
		value     int
		low, high int
	}{
		{"Net", int(o.Net), 0, int(Hybrid)},
		{"RCLimit", o.RCLimit, 0, math.MaxInt32},
		{"OneSided", int(o.OneSided), 0, int(Messages)},
		{"RDMA.Eager", o.RDMA.Eager, minEager, maxEager},
		{"RDMA.Rendezvous", int(o.RDMA.Rendezvous), 0, int(RendezvousCopy)},
		{"RDMA.Credits", o.RDMA.Credits, 1, receives},
		{"RDMA.Flow", int(o.RDMA.Flow), 0, int(FlowNIC)},
		{"RDMA.Receives", o.RDMA.Receives, 1, receives},
		{"RDMA.Sends", o.RDMA.Sends, 1, receives},
		{"RDMA.FastSize", o.RDMA.FastSize, 64, 64 << 10},
		{"RDMA.FastPeers", o.RDMA.FastPeers, 1, math.MaxInt32},
		{"RDMA.Rails", o.RDMA.Rails, 1, rdma.MaxRails},
		{"RDMA.Retries", o.RDMA.Retries, 1, 15},
		{"UD.Eager", o.UD.Eager, minEager, maxEager},
		{"UD.Receives", o.UD.Receives, 1, 2 * receives},
		{"UD.Packets", o.UD.Packets, 1, 1 << 20},
		{"TCP.Eager", o.TCP.Eager, minEager, maxEager},
		{"TCP.Queue", o.TCP.Queue, 1, 1 << 30},
	} {
		if f.value != 0 && (f.value < f.low || f.value > f.high) {
			return fmt.Errorf("Options.%s: %d out of range [%d, %d]", f.name, f.value, f.low, f.high)
		}
	}
	for i, d := range []time.Duration{o.GiveUp, o.UD.GiveUp, o.TCP.GiveUp} {
		if d != 0 && d < minGiveUp {
			name := []string{"GiveUp", "UD.GiveUp", "TCP.GiveUp"}[i]
			return fmt.Errorf("Options.%s: %v, want at least %v", name, d, minGiveUp)
		}
	}
	if o.RDMA.Fast && o.RDMA.Flow != FlowShared {
		return fmt.Errorf("Options.RDMA: Fast with Flow %v, want %v", o.RDMA.Flow, FlowShared)
	}
	if _, err := o.RDMA.Connect.QPAttr(verbs.RC); err != nil {
		return fmt.Errorf("Options.RDMA.Connect: %w", err)
	}
	return nil
}
