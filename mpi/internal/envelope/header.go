package envelope

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Size is the length of a header in bytes.
const Size = 40

// MaxMessage is the maximum length of a message in bytes: the limit of the field and of
// int.
const MaxMessage = min(1<<47, math.MaxInt)

// A Header describes a packet. Bytes bytes of payload follow it, or precede it where
// the header is at the end (the RDMA fast path).
//
// Length is the length of the message in bytes; of CTS, the number of bytes wanted; of
// Data, the offset of the payload in the message; of Throttle, 1 or 0. ID is the number
// of the sender's request in Eager and RTS and their replies, and of the receiver's
// request in Data and in the FIN of an RDMA write. Length, ID, Context, Tag and Flags
// of Active belong to its handler.
type Header struct {
	Context uint32 // of the communicator
	Tag     int32
	Length  uint64 // of the complete message; see above
	ID      uint64 // number of the request
	Source  uint32 // rank in the job
	Bytes   uint32 // payload of this packet
	Seq     uint32 // counts the Ordered packets of a rank and, separately, its Throttles
	Credits uint16 // packets of the reverse direction that were handled
	Flags   Flags
	Kind    Kind
}

// MarshalTo writes the header to b[:Size]. The last aligned word holds sequence number
// and kind and is never zero: when a poll of the memory sees it, the rest of the packet
// is visible.
func (h *Header) MarshalTo(b []byte) {
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

// ErrMalformed is wrapped by the errors of Unmarshal.
var ErrMalformed = errors.New("mpi: malformed packet")

// Unmarshal reads a header from b[:Size] and performs the checks that do not depend on
// the sender.
func (h *Header) Unmarshal(b []byte) error {
	if len(b) < Size {
		return fmt.Errorf("%w: %d bytes, header has %d", ErrMalformed, len(b), Size)
	}
	le := binary.LittleEndian
	*h = Header{
		Context: le.Uint32(b[0:]), Tag: int32(le.Uint32(b[4:])), Length: le.Uint64(b[8:]), ID: le.Uint64(b[16:]),
		Source: le.Uint32(b[24:]), Bytes: le.Uint32(b[28:]), Seq: le.Uint32(b[32:]), Credits: le.Uint16(b[36:]),
		Flags: Flags(b[38]), Kind: Kind(b[39]),
	}
	return h.validate()
}

// validate returns an error if the fields of the header are inconsistent.
func (h *Header) validate() error {
	switch {
	case h.Kind == 0 || h.Kind >= kindEnd:
		return fmt.Errorf("%w: unknown %v", ErrMalformed, h.Kind)
	case h.Flags&^allowedFlags[h.Kind] != 0 || h.Kind == RTS && h.Flags == ByCopy|ByWrite:
		return fmt.Errorf("%w: %v with flags %#x", ErrMalformed, h.Kind, uint8(h.Flags))
	case h.Length > MaxMessage || h.Kind == Data && h.Length+uint64(h.Bytes) > MaxMessage:
		return fmt.Errorf("%w: %v: message of %d bytes and more, limit is %d", ErrMalformed, h.Kind, h.Length, uint64(MaxMessage))
	}
	ok := true
	switch h.Kind {
	case Eager:
		ok = h.Length == uint64(h.Bytes) && (h.Flags == 0 || h.Flags&Synchronous != 0)
	case RTS:
		ok = h.Flags == 0 && h.Bytes == KeySize || h.Flags != 0 && (h.Bytes == 0 || h.Bytes == SignatureSize)
	case CTS:
		ok = h.Bytes == KeySize
	case Data:
		ok = h.Bytes > 0
	case FIN, Matched, Throttle:
		ok = h.Bytes == 0 && (h.Kind != Throttle || h.Length <= 1)
	}
	if !ok {
		return fmt.Errorf("%w: %v with length %d and a payload of %d bytes", ErrMalformed, h.Kind, h.Length, h.Bytes)
	}
	if h.Tag < 0 && (h.Kind == Eager || h.Kind == RTS) {
		return fmt.Errorf("%w: %v with tag %d", ErrMalformed, h.Kind, h.Tag)
	}
	return nil
}

// KeySize is the length of a Key in bytes.
const KeySize = 24

// A Key refers to memory that the other rank may read or write. It is the payload of an
// RTS for an RDMA READ, and of CTS, where without ByWrite only ID is valid.
type Key struct {
	Addr uint64
	RKey uint32
	Rail uint32 // index of the adapter
	ID   uint64 // of CTS: number of the receiver's request
}

// MarshalTo writes the key to b[:KeySize].
func (k *Key) MarshalTo(b []byte) {
	_ = b[KeySize-1]
	le := binary.LittleEndian
	le.PutUint64(b[0:], k.Addr)
	le.PutUint32(b[8:], k.RKey)
	le.PutUint32(b[12:], k.Rail)
	le.PutUint64(b[16:], k.ID)
}

// Unmarshal reads a key from b, whose length must be KeySize.
func (k *Key) Unmarshal(b []byte) error {
	if len(b) != KeySize {
		return fmt.Errorf("%w: key of %d bytes, want %d", ErrMalformed, len(b), KeySize)
	}
	le := binary.LittleEndian
	*k = Key{Addr: le.Uint64(b[0:]), RKey: le.Uint32(b[8:]), Rail: le.Uint32(b[12:]), ID: le.Uint64(b[16:])}
	return nil
}

// SignatureSize is the length in bytes of the payload of an RTS without a key.
const SignatureSize = 8

// MaxShortSignature is the mask of the signature bits of a Synchronous Eager message.
const MaxShortSignature = 1<<5 - 1

// The signature of a message is a number that its receiver compares with the expected one:
// a hash of the datatype, or of the collective call. 0 means unknown. It uses spare bits of
// the packet: the ID of an Eager message, the flags of a Synchronous one, whose ID is in use,
// and the ID of the key of an RTS, or its payload if it has no key.

// SetSignature sets the signature in an Eager header. Of a Synchronous message only the
// bits of MaxShortSignature are sent.
func (h *Header) SetSignature(s uint64) {
	if h.Flags&Synchronous != 0 {
		h.Flags |= Flags(s&MaxShortSignature) << 3
		return
	}
	h.ID = s
}

// Signature returns the signature in an Eager or RTS packet.
func (h *Header) Signature(payload []byte) uint64 {
	switch {
	case h.Kind == Eager && h.Flags&Synchronous != 0:
		return uint64(h.Flags >> 3)
	case h.Kind == Eager:
		return h.ID
	case len(payload) >= SignatureSize: // Key.ID is the last field
		return binary.LittleEndian.Uint64(payload[len(payload)-SignatureSize:])
	}
	return 0
}
