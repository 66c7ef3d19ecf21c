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
	Ask                   // what has come?
	Hello                 // which epoch do you have?
	lastKind
)

var kindNames = [lastKind]string{Data: "DATA", Ack: "ACK", Nack: "NACK", Ask: "ASK", Hello: "HELLO"}

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
	First  Flags = 1 << iota // the message begins here
	Last                     // and ends here
	Answer                   // an acknowledgement is wanted now
	Wake                     // its receiver should look: see Core.SendSolicited
	knownFlags
)

// Sizes in bytes.
const (
	DataSize     = 36 // the header of Data
	FeedbackSize = 40 // of Ack and Nack, which have nothing behind it
	askSize      = 32 // of Ask and Hello, neither
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
	Have uint64 // Ack, Nack: bit i says that Data Ack+1+i has come as well

	Order  uint32 // counts what leaves: Data, every time, and Ask
	Echo   uint32 // the newest Order that has come
	Length uint32 // Data: bytes of the whole message
}

// size is the length of the header in bytes.
func (h *Header) size() int {
	switch h.Kind {
	case Data:
		return DataSize
	case Ack, Nack:
		return FeedbackSize
	}
	return askSize
}

// Put writes the header to b and returns its length.
func (h *Header) Put(b []byte) int {
	n := h.size()
	_ = b[n-1]
	b[0], b[1], b[2], b[3] = magic, byte(h.Kind), byte(h.Flags), 0
	be := binary.BigEndian
	be.PutUint32(b[4:], h.From)
	be.PutUint32(b[8:], h.Epoch)
	be.PutUint32(b[12:], h.To)
	be.PutUint32(b[16:], h.Seq)
	be.PutUint32(b[20:], h.Ack)
	be.PutUint32(b[24:], h.Order)
	be.PutUint32(b[28:], h.Echo)
	switch h.Kind {
	case Data:
		be.PutUint32(b[32:], h.Length)
	case Ack, Nack:
		be.PutUint64(b[32:], h.Have)
	}
	return n
}

// From reads Header.From of a packet, for a caller who has to know whose it is. It
// reports whether there is one; Handle checks the rest.
func From(packet []byte) (from uint32, ok bool) {
	if len(packet) < askSize {
		return 0, false
	}
	return binary.BigEndian.Uint32(packet[4:]), true
}

// Get reads the header of a packet and checks what can be checked without
// knowing the sender. It reports whether the packet is one.
func (h *Header) Get(b []byte) bool {
	if len(b) < askSize || b[0] != magic || b[3] != 0 {
		return false
	}
	be := binary.BigEndian
	*h = Header{
		Kind: Kind(b[1]), Flags: Flags(b[2]), From: be.Uint32(b[4:]), Epoch: be.Uint32(b[8:]), To: be.Uint32(b[12:]),
		Seq: be.Uint32(b[16:]), Ack: be.Uint32(b[20:]), Order: be.Uint32(b[24:]), Echo: be.Uint32(b[28:]),
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
		return h.plausible(uint64(len(b) - DataSize))
	case Ack, Nack:
		if len(b) != FeedbackSize {
			return false
		}
		h.Have = be.Uint64(b[32:])
		return true
	}
	return len(b) == askSize
}

// plausible reports whether Data with a payload of n bytes says nothing of its
// message that cannot be: a piece has something in it, and is not all.
func (h *Header) plausible(n uint64) bool {
	if h.Flags&(First|Last) == First|Last {
		return n == uint64(h.Length)
	}
	return n > 0 && n < uint64(h.Length)
}

// after reports whether a number comes after another.
func after(a, b uint32) bool { return int32(a-b) > 0 }
