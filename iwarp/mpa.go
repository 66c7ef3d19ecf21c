package iwarp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Keys of the two frames of the set-up (RFC 5044, section 7.1.1).
const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"
)

// Lengths in bytes.
const (
	HandshakeLen   = 20  // of a Handshake without private data
	maxPrivateData = 512 // RFC 5044, section 7.1.1, with IRD and ORD
	enhancedLen    = 4   // of IRD and ORD

	// MaxPrivateData is the maximum private data of the application, of a peer with the limit of
	// the standard. Linux's siw accepts 252.
	MaxPrivateData = maxPrivateData - enhancedLen
)

// Flags of a Handshake, in byte 16.
const (
	flagMarkers  = 0x80
	flagCRC      = 0x40
	flagReject   = 0x20
	flagEnhanced = 0x10
	flagOffers   = 0x04 // request: the sender has the extensions of this package
	flagExtended = 0x02 // reply: and so has the responder, which does not return flagOffers
)

// NoLimit as an IRD or ORD leaves the number to other agreements (RFC 6581, section 9.1).
const NoLimit = 0x3fff

// A Handshake is the request or reply that sets a connection up.
type Handshake struct {
	Reply    bool
	Reject   bool // replies
	Markers  bool // the sender requires markers in the FPDUs that it receives
	CRC      bool // the sender requires CRCs, in both directions
	Revision uint8

	// Enhanced is set if the fields below are valid (RFC 6581, revision 2).
	Enhanced   bool
	PeerToPeer bool   // the initiator sends a ready-to-receive indication at once
	SendRTR    bool   // it may be an empty SEND,
	WriteRTR   bool   // an empty WRITE,
	ReadRTR    bool   // an empty READ
	IRD        uint16 // READs that the sender serves at a time, 14 bits
	ORD        uint16 // READs that the sender issues at a time, 14 bits

	// Extended is set by ends of this package: a request offers the extensions that the package
	// comment lists, a reply accepts them. The two use different reserved bits, because siw
	// returns those of the request.
	Extended bool

	Private []byte // of the application
}

// Errors of ParseHandshake and Negotiate.
var (
	ErrShort     = errors.New("iwarp: frame is not complete")
	ErrHandshake = errors.New("iwarp: invalid request or reply")
	ErrMarkers   = errors.New("iwarp: peer requires markers")
	ErrReads     = errors.New("iwarp: peer needs more reads at a time than this end serves")
	ErrNoRTR     = errors.New("iwarp: no common ready-to-receive indication")
	ErrRejected  = errors.New("iwarp: peer rejected the connection")
)

// AppendTo appends the frame to b.
func (h *Handshake) AppendTo(b []byte) []byte {
	key, offer := requestKey, byte(flagOffers)
	if h.Reply {
		key, offer = replyKey, flagExtended
	}
	var flags byte
	for _, f := range []struct {
		set bool
		bit byte
	}{{h.Markers, flagMarkers}, {h.CRC, flagCRC}, {h.Reject, flagReject}, {h.Enhanced, flagEnhanced}, {h.Extended, offer}} {
		if f.set {
			flags |= f.bit
		}
	}
	n := len(h.Private)
	if h.Enhanced {
		n += enhancedLen
	}
	b = append(append(b, key...), flags, h.Revision)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	if h.Enhanced {
		b = binary.BigEndian.AppendUint16(b, withFlags(h.IRD, h.PeerToPeer, h.SendRTR))
		b = binary.BigEndian.AppendUint16(b, withFlags(h.ORD, h.WriteRTR, h.ReadRTR))
	}
	return append(b, h.Private...)
}

func withFlags(n uint16, high, low bool) uint16 {
	n = min(n, NoLimit)
	if high {
		n |= 1 << 15
	}
	if low {
		n |= 1 << 14
	}
	return n
}

// ParseHandshake parses the frame at the beginning of b and returns its length. Of an incomplete
// frame it returns the length that is known to be needed and ErrShort. Private refers to b.
func ParseHandshake(b []byte, reply bool) (h Handshake, n int, err error) {
	key := requestKey
	if reply {
		key = replyKey
	}
	if k := min(len(b), len(key)); string(b[:k]) != key[:k] {
		return h, 0, fmt.Errorf("%w: key %q, want %q", ErrHandshake, b[:k], key)
	}
	if len(b) < HandshakeLen {
		return h, HandshakeLen, ErrShort
	}
	flags, rev, size := b[16], b[17], int(binary.BigEndian.Uint16(b[18:]))
	h = Handshake{
		Reply: reply, Revision: rev, Markers: flags&flagMarkers != 0, CRC: flags&flagCRC != 0,
		Reject: reply && flags&flagReject != 0, Enhanced: flags&flagEnhanced != 0 && rev >= 2,
		Extended: !reply && flags&flagOffers != 0 || reply && flags&(flagOffers|flagExtended) == flagExtended,
	}
	switch {
	case rev != 1 && rev != 2:
		return h, 0, fmt.Errorf("%w: revision %d, want 1 or 2", ErrHandshake, rev)
	case size > maxPrivateData:
		return h, 0, fmt.Errorf("%w: %d bytes of private data, limit %d", ErrHandshake, size, maxPrivateData)
	case h.Enhanced && size < enhancedLen:
		return h, 0, fmt.Errorf("%w: %d bytes of private data, IRD and ORD need %d", ErrHandshake, size, enhancedLen)
	case len(b) < HandshakeLen+size:
		return h, HandshakeLen + size, ErrShort
	}
	h.Private = b[HandshakeLen : HandshakeLen+size]
	if h.Enhanced {
		ird, ord := binary.BigEndian.Uint16(h.Private), binary.BigEndian.Uint16(h.Private[2:])
		h.IRD, h.PeerToPeer, h.SendRTR = ird&NoLimit, ird&(1<<15) != 0, ird&(1<<14) != 0
		h.ORD, h.WriteRTR, h.ReadRTR = ord&NoLimit, ord&(1<<15) != 0, ord&(1<<14) != 0
		h.Private = h.Private[enhancedLen:]
	}
	return h, HandshakeLen + size, nil
}
