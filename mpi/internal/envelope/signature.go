package envelope

import "encoding/binary"

// SignatureSize is the length in bytes of the payload of a Ready packet that has no
// key.
const SignatureSize = 8

// MaxShortSignature is as much of a signature as a Synchronous Eager message can carry.
const MaxShortSignature = 1<<5 - 1

// The signature of a message is a number that its receiver compares with what it
// expects: what the message is made of, or which collective call it belongs to. 0 says
// nothing. It travels where the packet has bits to spare: as the ID of an Eager message,
// in the flags of one that is Synchronous, whose ID has another use, and as the ID of
// the key of a Ready message, or as its payload if there is no key.

// SetSignature gives an Eager header the signature of its message. Of a Synchronous one
// only the lowest bits travel, those of MaxShortSignature.
func (h *Header) SetSignature(s uint64) {
	if h.Flags&Synchronous != 0 {
		h.Flags |= Flags(s&MaxShortSignature) << 3
		return
	}
	h.ID = s
}

// Signature returns the signature of a message, from its Eager or Ready packet.
func (h *Header) Signature(payload []byte) uint64 {
	switch {
	case h.Kind == Eager && h.Flags&Synchronous != 0:
		return uint64(h.Flags >> 3)
	case h.Kind == Eager:
		return h.ID
	case len(payload) >= SignatureSize: // where Key has its ID
		return binary.LittleEndian.Uint64(payload[len(payload)-SignatureSize:])
	}
	return 0
}
