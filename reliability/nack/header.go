package nack

import (
	"encoding/binary"
	"fmt"
)

// Kind says what a packet is for.
type Kind uint8

// The kinds.
const (
	Data  Kind = iota + 1 // a message, or a piece of one
	Ack                   // what has come
	Nack                  // what has come; something is missing
	Probe                 // what has come?
	Hello                 // which epoch do you have?
	lastKind
)

var kindNames = [lastKind]string{Data: "DATA", Ack: "ACK", Nack: "NACK", Probe: "ASK", Hello: "HELLO"}

func (k Kind) String() string {
	if k == 0 || k >= lastKind {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// Flags of a Data packet.
type Flags uint8

// The flags.
const (
	First        Flags = 1 << iota // the message begins here
	Last                           // and ends here
	AckRequested                   // an acknowledgement is wanted now
	Solicited                      // its receiver should look: see Core.SendSolicited
	knownFlags
)

// Sizes in bytes.
const (
	DataSize     = 36 // the header of Data
	FeedbackSize = 40 // of Ack and Nack, which have nothing behind it
	probeSize    = 32 // of Ask and Hello, neither
	magic        = 'N'
)

// Header is the header of a packet. Numbers are compared as in serial number
// arithmetic (RFC 1982): they wrap.
type Header struct {
	Kind  Kind
	Flags Flags

	From  uint32 // the sender's name for itself: Options.Self
	Epoch uint32 // of the sender's life, not 0
	To    uint32 // the epoch of the receiver's that this is for; 0 in Hello only

	Seq  uint32 // Data: its number, Ask: that of the next to come, others: 0
	Ack  uint32 // all Data before this number has come
	Sack uint64 // Ack, Nack: bit i says that Data Ack+1+i has come as well

	TxNum  uint32 // counts what leaves: Data, every time, and Ask
	TxEcho uint32 // the newest Order that has come
	Length uint32 // Data: bytes of the whole message
}

// encodedLen is the length of the header in bytes.
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

// ParseFrom reads Header.From of a packet, for a caller who has to know whose it is. It
// reports whether there is one; Handle checks the rest.
func ParseFrom(packet []byte) (from uint32, ok bool) {
	if len(packet) < probeSize {
		return 0, false
	}
	return binary.BigEndian.Uint32(packet[4:]), true
}

// Parse reads the header of a packet and checks what can be checked without
// knowing the sender. It reports whether the packet is one.
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

// validPayload reports whether Data with a payload of n bytes says nothing of its
// message that cannot be: a piece has something in it, and is not all.
func (h *Header) validPayload(n uint64) bool {
	if h.Flags&(First|Last) == First|Last {
		return n == uint64(h.Length)
	}
	return n > 0 && n < uint64(h.Length)
}

// seqAfter reports whether a number comes after another.
func seqAfter(a, b uint32) bool { return int32(a-b) > 0 }
