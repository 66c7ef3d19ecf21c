package bsdh

// Brief is the header of a Data message as the immediate data of a SEND that carries
// nothing but the payload. So a payload as long as the path MTU needs one packet, as it
// does where it is written into a ring. It has what cannot be known otherwise: 16 bits of
// Ack, 14 of Bufs, and the two flags that data may have.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+---------------------------+-+-+
//	|   mseq_ack, the low 16 bits   |           bufs            |P|p|
//	+-------------------------------+---------------------------+-+-+
//
// P is OOBPending and p OOBPresent.
type Brief uint32

const (
	maxBriefBufs = 1<<14 - 1
	briefFlags   = OOBPresent | OOBPending
)

// MakeBrief is the brief form of a header, and false if there is none: another message
// than Data, other flags, or more than 16383 receives.
func MakeBrief(h Header) (Brief, bool) {
	if h.MID != MIDData || h.Flags&^briefFlags != 0 || h.Bufs > maxBriefBufs {
		return 0, false
	}
	return Brief(h.Ack<<16 | uint32(h.Bufs)<<2 | uint32(h.Flags)), true
}

// Header is the whole header of a message with n bytes of payload: seq is the number that
// is due, and sent that of the last message that we have sent, which the peer cannot
// have received more than 65535 messages before.
func (b Brief) Header(seq, sent uint32, n int) Header {
	return Header{
		MID: MIDData, Flags: Flags(b) & briefFlags, Bufs: uint16(b>>2) & maxBriefBufs,
		Len: uint32(HeaderBytes + n), Seq: seq, Ack: sent - uint32(uint16(sent)-uint16(b>>16)),
	}
}
