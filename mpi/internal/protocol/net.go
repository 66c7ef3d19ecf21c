package protocol

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// Net carries out what a Core decides. Its methods do not block. What comes of
// them is told later, by Core.HandlePacket, Core.TransferDone, Core.Resume and Core.FailPeer, of
// which the last three may be called from within them.
//
// Packets to a rank may take several ways and overtake one another there, within
// MaxEarly and MaxEarlyBytes, but none overtakes a Store. Packets are neither lost
// nor doubled while the rank is not lost.
//
// Before Core.FailPeer is called the rank is cut off: nothing of it comes any more,
// and it can neither read nor write what it was given by Expose.
type Net interface {
	// Limits says how a rank is reached.
	Limits(rank int) Limits

	// Send sends a packet. The payload is copied, or has left, when it
	// returns. It returns false if there is no room now, and Core.Resume
	// follows when there is.
	Send(rank int, h *envelope.Header, payload []byte) bool

	// RegisterMemory lets a rank read b (or write to it) until the Core takes that
	// back by Hide. If it returns an error the message goes in packets instead.
	RegisterMemory(rank int, b []byte, write bool) (envelope.Key, Registration, error)

	// DeregisterMemory ends an Expose.
	DeregisterMemory(Registration)

	// RDMARead reads what a key names into b, and Store writes b there; what is
	// sent after a Store arrives behind it, and only if it has been done. If they
	// return nil, b is the net's until Core.TransferDone, which follows once, also if the
	// rank is lost. They return ErrNoRoom if there is no room now, and Core.Resume
	// follows when there is. Another error says that b cannot be moved so (there
	// may be a limit to registered memory): the message goes in packets instead.
	RDMARead(rank int, b []byte, key envelope.Key, move uint64) error
	RDMAWrite(rank int, b []byte, key envelope.Key, move uint64) error
}

// ErrNoRoom is what Net.RDMARead and Net.RDMAWrite return when they have to wait.
var ErrNoRoom = errors.New("no room now")

// Registration is what Net.RegisterMemory gave memory away by. It is not nil.
type Registration any

// Limits says how a rank is reached.
type Limits struct {
	Eager      int    // payload of the longest packet, in bytes; a key fits in at least
	Rendezvous Scheme // how longer messages travel
}

// Scheme is a way in which a message travels that is too long for a packet:
// after a handshake, the rendezvous.
type Scheme uint8

const (
	RendezvousRead  Scheme = iota // the receiver reads it: RTS, RDMA READ, FIN
	RendezvousWrite               // the sender writes it: RTS, CTS, RDMA WRITE, FIN
	RendezvousCopy                // in packets: RTS, CTS, DATA
)

func (s Scheme) String() string {
	names := [...]string{"read", "write", "copy"}
	if int(s) >= len(names) {
		return fmt.Sprintf("Scheme(%d)", uint8(s))
	}
	return names[s]
}
