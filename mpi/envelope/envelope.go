package envelope

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind says what a packet is for.
type Kind uint8

const (
	Eager   Kind = iota + 1 // a whole message
	Ready                   // ready to send: a message that is fetched, or asked for (RTS)
	Clear                   // clear to send: the receiver of a message is there (CTS, RTR)
	Data                    // a part of a message that was asked for
	Finish                  // the memory of a message has been read, or written
	Matched                 // a synchronous send has met its receive
	Active                  // for a handler: one-sided communication
	Hello                   // the first packet of a connection, from its client
	Credit                  // nothing but credits
	Bye                     // the last packet of a connection
	last
)

var names = [...]string{"", "EAGER", "RTS", "CTS", "DATA", "FIN", "MATCHED", "ACTIVE", "HELLO", "CREDIT", "BYE"}

func (k Kind) String() string {
	if k == 0 || k >= last {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return names[k]
}

// Flags modify a packet.
type Flags uint8

const (
	// Synchronous asks for Matched when an Eager message meets its receive.
	Synchronous Flags = 1 << iota
	// Copied says that a Ready message cannot be fetched: it waits for Clear,
	// and comes in packets.
	Copied
	// Place says that a Clear names memory that the message shall be written to.
	Place
	known = Synchronous | Copied | Place
)

// Size is the length of a header in bytes.
const Size = 40

// Header describes a packet. It is followed by Bytes bytes of payload, or
// preceded by them where the header lies at the end (see the RDMA fast path).
type Header struct {
	Context uint32 // of the communicator
	Tag     int32
	Length  uint64 // of the whole message; of Data: the offset of its first byte
	ID      uint64 // the request that the packet is about
	Source  uint32 // rank in the job
	Bytes   uint32 // payload of this packet
	Seq     uint32 // counts the packets from a rank that have to be matched in order
	Credits uint16 // packets of the other direction that have been dealt with
	Flags   Flags
	Kind    Kind
}

// Ordered reports whether packets of a kind are dealt with in the order they
// were sent in, on whatever ways they came.
func (k Kind) Ordered() bool { return k == Eager || k == Ready || k == Active }

// Put writes the header to b[:Size]. The last aligned word holds sequence
// number and kind, and is never zero: who polls memory for it sees the rest
// once it is there.
func (h *Header) Put(b []byte) {
	_ = b[Size-1]
	le := binary.LittleEndian
	le.PutUint32(b[0:], h.Context)
	le.PutUint32(b[4:], uint32(h.Tag))
	le.PutUint64(b[8:], h.Length)
	le.PutUint64(b[16:], h.ID)
	le.PutUint32(b[24:], h.Source)
	le.PutUint32(b[28:], h.Bytes)
	le.PutUint32(b[32:], h.Seq)
	le.PutUint16(b[36:], h.Credits)
	b[38] = byte(h.Flags)
	b[39] = byte(h.Kind)
}

// ErrMalformed is what Get returns wrapped.
var ErrMalformed = errors.New("malformed packet")

// Get reads a header from b[:Size] and checks what can be checked without
// knowing the sender.
func (h *Header) Get(b []byte) error {
	if len(b) < Size {
		return fmt.Errorf("%w: %d bytes are no header of %d", ErrMalformed, len(b), Size)
	}
	le := binary.LittleEndian
	*h = Header{
		Context: le.Uint32(b[0:]), Tag: int32(le.Uint32(b[4:])), Length: le.Uint64(b[8:]), ID: le.Uint64(b[16:]),
		Source: le.Uint32(b[24:]), Bytes: le.Uint32(b[28:]), Seq: le.Uint32(b[32:]), Credits: le.Uint16(b[36:]),
		Flags: Flags(b[38]), Kind: Kind(b[39]),
	}
	switch {
	case h.Kind == 0 || h.Kind >= last:
		return fmt.Errorf("%w: %v is unknown", ErrMalformed, h.Kind)
	case h.Flags&^known != 0:
		return fmt.Errorf("%w: flags %#x are unknown", ErrMalformed, h.Flags)
	case h.Length > MaxMessage:
		return fmt.Errorf("%w: a message of %d bytes", ErrMalformed, h.Length)
	case h.Kind == Eager && h.Length != uint64(h.Bytes):
		return fmt.Errorf("%w: %d of %d bytes of an eager message", ErrMalformed, h.Bytes, h.Length)
	}
	return nil
}

// MaxMessage is the length of the longest message in bytes.
const MaxMessage = 1 << 47

// KeySize is the length of a Key in bytes.
const KeySize = 24

// Key is memory that the other rank may read or write: the payload of Ready,
// and of Clear with Place.
type Key struct {
	Addr uint64
	RKey uint32
	Rail uint32 // which of several adapters the key is for
	ID   uint64 // of Clear: the request at the receiver
}

// Put writes the key to b[:KeySize].
func (k *Key) Put(b []byte) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], k.Addr)
	le.PutUint32(b[8:], k.RKey)
	le.PutUint32(b[12:], k.Rail)
	le.PutUint64(b[16:], k.ID)
}

// Get reads a key.
func (k *Key) Get(b []byte) error {
	if len(b) != KeySize {
		return fmt.Errorf("%w: a key of %d bytes, not %d", ErrMalformed, len(b), KeySize)
	}
	le := binary.LittleEndian
	*k = Key{Addr: le.Uint64(b[0:]), RKey: le.Uint32(b[8:]), Rail: le.Uint32(b[12:]), ID: le.Uint64(b[16:])}
	return nil
}
