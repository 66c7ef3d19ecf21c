package protocol

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// A Net carries out the decisions of a Core. Its methods do not block. It reports
// results by Core.HandlePacket, Core.TransferDone, Core.Resume and Core.FailPeer; the
// last three may be called from within its methods.
//
// Packets to a rank may take several routes and arrive out of order, within MaxEarly
// and MaxEarlyBytes, but none overtakes an RDMAWrite. Until the rank fails, packets are
// neither lost nor duplicated.
//
// Before a Net calls Core.FailPeer, it disconnects the rank: no packet of it arrives
// any more, and it cannot access registered memory.
type Net interface {
	// Limits returns the packet size and the rendezvous protocol for a rank.
	Limits(rank int) Limits

	// Send sends a packet. The payload is copied, or sent, before Send returns. It
	// returns false if there is no room now; Core.Resume follows when there is.
	Send(rank int, h *envelope.Header, payload []byte) bool

	// RegisterMemory lets a rank read b, or write to it, until DeregisterMemory. After
	// an error the Core falls back to RendezvousCopy.
	RegisterMemory(rank int, b []byte, write bool) (envelope.Key, Registration, error)

	// DeregisterMemory ends a registration.
	DeregisterMemory(Registration)

	// RDMARead reads the remote memory of key into b; RDMAWrite writes b to it. A
	// packet sent after an RDMAWrite arrives after the write is complete. If they
	// return nil, the net owns b until it calls Core.TransferDone with transferID, once,
	// also if the rank fails. They return ErrNoRoom if there is no room now;
	// Core.Resume follows when there is. Another error means that b cannot be
	// registered, for example because of a limit of registered memory; the Core falls
	// back to RendezvousCopy.
	RDMARead(rank int, b []byte, key envelope.Key, transferID uint64) error
	RDMAWrite(rank int, b []byte, key envelope.Key, transferID uint64) error
}

// ErrNoRoom is returned by RDMARead and RDMAWrite if the send queue is full.
var ErrNoRoom = errors.New("net: send queue full")

// A Registration identifies the memory of a RegisterMemory call. It is not nil.
type Registration any

// Limits are the properties of the route to a rank.
type Limits struct {
	Eager      int    // maximum payload of a packet in bytes, at least envelope.KeySize
	Rendezvous Scheme // protocol of longer messages
}

// A Scheme is a rendezvous protocol: the way to send a message that is too long for one
// packet.
type Scheme uint8

const (
	RendezvousRead  Scheme = iota // the receiver reads: RTS, RDMA READ, FIN
	RendezvousWrite               // the sender writes: RTS, CTS, RDMA WRITE, FIN
	RendezvousCopy                // in packets: RTS, CTS, DATA
)

func (s Scheme) String() string {
	names := [...]string{"read", "write", "copy"}
	if int(s) >= len(names) {
		return fmt.Sprintf("Scheme(%d)", uint8(s))
	}
	return names[s]
}
