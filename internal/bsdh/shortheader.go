package bsdh

// A ShortHeader is the header of a Data message in the immediate data of a SEND, whose
// payload is only the data. A payload of the path MTU then needs one packet, as with
// writes into a ring. It has the fields that the receiver cannot derive: 16 bits of
// Ack, 14 of Bufs, and the two flags of data.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+---------------------------+-+-+
//	|   mseq_ack, the low 16 bits   |           bufs            |P|p|
//	+-------------------------------+---------------------------+-+-+
//
// P is OOBPending and p OOBPresent.
type ShortHeader uint32

const (
	maxShortBufs = 1<<14 - 1
	shortFlags   = OOBPresent | OOBPending
)

// MakeShortHeader returns the short form of a header. It reports false if the message is
// not Data, has other flags, or advertises more than 16383 receives.
func MakeShortHeader(h Header) (ShortHeader, bool) {
	if h.MID != MIDData || h.Flags&^shortFlags != 0 || h.Bufs > maxShortBufs {
		return 0, false
	}
	return ShortHeader(h.Ack<<16 | uint32(h.Bufs)<<2 | uint32(h.Flags)), true
}

// Header returns the complete header of a message with n bytes of payload. seq is
// the expected sequence number, and sent that of the last message sent; h
// acknowledges one of the last 65536 messages.
func (h ShortHeader) Header(seq, sent uint32, n int) Header {
	return Header{
		MID: MIDData, Flags: Flags(h) & shortFlags, Bufs: uint16(h>>2) & maxShortBufs,
		Len: uint32(HeaderBytes + n), Seq: seq, Ack: sent - uint32(uint16(sent)-uint16(h>>16)),
	}
}
