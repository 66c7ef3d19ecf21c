package envelope

import "encoding/binary"

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
