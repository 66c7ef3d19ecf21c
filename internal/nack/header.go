package nack

import (
	"encoding/binary"
	"fmt"
)

// A Kind is the type of a packet.
type Kind uint8

// Kinds of packets.
const (
	Data  Kind = iota + 1 // a message or a fragment of one
	Ack                   // acknowledgement
	Nack                  // acknowledgement that requests missing packets
	Probe                 // requests an acknowledgement
	Hello                 // requests the epoch of the peer
	lastKind
)

var kindNames = [lastKind]string{Data: "DATA", Ack: "ACK", Nack: "NACK", Probe: "PROBE", Hello: "HELLO"}

// String implements fmt.Stringer.
func (k Kind) String() string {
	if k == 0 || k >= lastKind {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// Flags are the flags of a Data packet.
type Flags uint8

// Flags of a Data packet.
const (
	First        Flags = 1 << iota // first fragment of a message
	Last                           // last fragment of a message
	AckRequested                   // requests an immediate acknowledgement
	Solicited                      // wakes the receiver, see Core.SendSolicited
	knownFlags
)

// Sizes in bytes.
const (
	DataSize     = 36 // header of Data
	FeedbackSize = 40 // header of Ack and Nack, without payload
	probeSize    = 32 // header of Probe and Hello, without payload
	magic        = 'N'
)

// A Header is the header of a packet. Numbers wrap and are compared in serial
// number arithmetic (RFC 1982).
type Header struct {
	Kind  Kind
	Flags Flags

	From  uint32 // ID of the sender: its Options.Self
	Epoch uint32 // incarnation of the sender, not 0
	To    uint32 // incarnation of the receiver; 0 only in Hello

	Seq  uint32 // Data: sequence number; Probe: next sequence number to be sent; otherwise 0
	Ack  uint32 // all Data packets before this sequence number have been received
	Sack uint64 // Ack, Nack: bit i reports that packet Ack+1+i has been received

	TxNum  uint32 // transmission number: counts sent Data and Probe packets, retransmissions included
	TxEcho uint32 // highest TxNum received
	Length uint32 // Data: total length of the message in bytes
}

// encodedLen returns the length of the header in bytes.
func (h *Header) encodedLen() int {
	switch h.Kind {
	case Data:
		return DataSize
	case Ack, Nack:
		return FeedbackSize
	}
	return probeSize
}

// Put writes the header to b and returns its length.
func (h *Header) Put(b []byte) int {
	n := h.encodedLen()
	_ = b[n-1]
	b[0], b[1], b[2], b[3] = magic, byte(h.Kind), byte(h.Flags), 0
	be := binary.BigEndian
	be.PutUint32(b[4:], h.From)
	be.PutUint32(b[8:], h.Epoch)
	be.PutUint32(b[12:], h.To)
	be.PutUint32(b[16:], h.Seq)
	be.PutUint32(b[20:], h.Ack)
	be.PutUint32(b[24:], h.TxNum)
	be.PutUint32(b[28:], h.TxEcho)
	switch h.Kind {
	case Data:
		be.PutUint32(b[32:], h.Length)
	case Ack, Nack:
		be.PutUint64(b[32:], h.Sack)
	}
	return n
}

// ParseFrom returns Header.From of a packet, for demultiplexing. It reports
// whether the packet is long enough. HandlePacket validates the rest.
func ParseFrom(packet []byte) (from uint32, ok bool) {
	if len(packet) < probeSize {
		return 0, false
	}
	return binary.BigEndian.Uint32(packet[4:]), true
}

// Parse decodes the header of a packet and validates it as far as possible
// without the state of the sender. It reports whether the packet is valid.
func (h *Header) Parse(b []byte) bool {
	if len(b) < probeSize || b[0] != magic || b[3] != 0 {
		return false
	}
	be := binary.BigEndian
	*h = Header{
		Kind: Kind(b[1]), Flags: Flags(b[2]), From: be.Uint32(b[4:]), Epoch: be.Uint32(b[8:]), To: be.Uint32(b[12:]),
		Seq: be.Uint32(b[16:]), Ack: be.Uint32(b[20:]), TxNum: be.Uint32(b[24:]), TxEcho: be.Uint32(b[28:]),
	}
	if h.Kind == 0 || h.Kind >= lastKind || h.Epoch == 0 || (h.To == 0) != (h.Kind == Hello) || h.Kind != Data && h.Flags != 0 {
		return false
	}
	switch h.Kind {
	case Data:
		if len(b) < DataSize || h.Flags >= knownFlags {
			return false
		}
		h.Length = be.Uint32(b[32:])
		return h.validPayload(uint64(len(b) - DataSize))
	case Ack, Nack:
		if len(b) != FeedbackSize {
			return false
		}
		h.Sack = be.Uint64(b[32:])
		return true
	}
	return len(b) == probeSize
}

// validPayload reports whether a Data packet may have n bytes of payload: a
// fragment is neither empty nor the complete message.
func (h *Header) validPayload(n uint64) bool {
	if h.Flags&(First|Last) == First|Last {
		return n == uint64(h.Length)
	}
	return n > 0 && n < uint64(h.Length)
}

// seqAfter reports whether a follows b in serial number arithmetic.
func seqAfter(a, b uint32) bool { return int32(a-b) > 0 }
