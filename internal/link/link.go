package link

import (
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/wire"
)

// Conn moves batches of RoCE v2 packets (BTH to ICRC, without IP and UDP
// headers) between adapters. Implementations: UDP sockets and an in-memory
// network; fault injection and capture wrap any of them.
//
// All addresses that a Conn accepts or returns are canonical (hostaddr.Canonical): a
// link-local address has no zone, and is on the interface that the Conn is bound to.
//
// One goroutine at a time may call WriteBatch, and one at a time ReadBatch, both
// concurrently. Wait, Wake and Close may be called by any goroutine.
type Conn interface {
	// LocalAddr returns the address from which this end sends, with a specific IP
	// address and port.
	LocalAddr() netip.AddrPort

	// Caps returns the accelerations in use and the effective sizes of the
	// socket buffers. An acceleration that fails in use is switched off
	// and turns false; otherwise nothing changes.
	Caps() Caps

	// WriteBatch seals every packet of b that is not sealed yet (see
	// Batch.Seal) and sends them in order. The batch may be reset when
	// WriteBatch returns. A datagram that the system refuses is counted and
	// reported in b (see Batch.Refusals); the others are sent all the same. The
	// error is not nil only when the link is unusable (closed).
	WriteBatch(b *Batch) error

	// ReadBatch fills r with datagrams that have arrived and returns their
	// number. It never blocks. It may leave datagrams although r has room: the
	// receive buffer is empty only when it returns 0. ICMP errors that have arrived are in r.Refusals, also if no
	// datagram has. The buffers in r are valid until the next ReadBatch with the
	// same r. The error is not nil only when the link is closed.
	ReadBatch(r *Datagrams) (int, error)

	// Wait blocks until the link is readable, Wake is called, or timeout has
	// passed (negative: no timeout). It reports whether the link is readable. A Wake that comes before Wait is not lost; several of
	// them count as one, and one ends at least one Wait. Wait may also return
	// early for no reason.
	Wait(timeout time.Duration) (readable bool, err error)

	// Wake makes the current or the next Wait return.
	Wake()

	// Close releases the link and makes a blocked Wait return net.ErrClosed.
	// Closing twice is safe.
	Close() error
}

// Caps are the capabilities that a Conn found at open, without those disabled
// by options.
type Caps struct {
	GSO, GRO, MMsg bool   // segmentation offload out, receive offload in, sendmmsg/recvmmsg
	RecvBuffer     int    // bytes, effective (Linux: half of the value of SO_RCVBUF)
	SendBuffer     int    // bytes
	MTU            int    // of the interface, bytes; 0 when unknown
	Interface      string // that has the address, and the zone of link-local ones; "" when unknown
	Index          int    // of the interface; 0 when unknown
	Up             bool   // the interface was up and had a carrier at open
	ExactID        bool   // IPv4 identification of received packets is known (memory network)
	Name           string // "udp-linux", "udp-portable", "memory"
}

// Datagram is one received buffer: one UDP datagram, or several of equal size
// that GRO merged (the last may be shorter).
type Datagram struct {
	Src netip.AddrPort
	TOS uint8  // IPv4 TOS or IPv6 traffic class as received: carries the ECN mark
	Buf []byte // BTH..ICRC of one packet, or several packets of Seg bytes each
	Seg int    // segment size; equal to len(Buf) for a single packet
	ID  uint16 // IPv4 identification of the first segment, if Caps.ExactID

	HopLimit  uint8  // IPv4 TTL or IPv6 hop limit; 0 if unknown, as with sockets
	FlowLabel uint32 // IPv6; 0 if unknown

	Unsealed bool // the packets came through memory of this host without an ICRC, whose bytes are undefined
	Unstable bool // Buf is memory that the sender can still write: copy what is read twice
}

// Seal writes the ICRC of every packet of an unsealed datagram from d.Src to local. Buf must be
// writable.
func (d *Datagram) Seal(local netip.AddrPort) {
	if !d.Unsealed {
		return
	}
	s := wire.NewICRC(d.Src, local)
	for i := range d.Count() {
		if pkt := d.Packet(i); len(pkt) >= wire.MinPacketLen {
			s.Put(pkt, d.ID+uint16(i))
		}
	}
	d.Unsealed = false
}
