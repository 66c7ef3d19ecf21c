// Package bsdh is the codec of the Sockets Direct Protocol (SDP): the messages
// with which two sockets talk over a reliable connection. It knows the base
// header (BSDH), the extended headers, and the two messages that travel as
// private data of connection management, Hello and HelloAck. Like package wire
// it has no state, no I/O and no clock: who may send what, and when, is the
// socket's.
//
// # A message
//
// One message is one SEND on a queue pair of type RC. All fields are
// big-endian:
//
//	0                16                16 + MID.Extended()          Header.Len
//	+----------------+------------------+---------------------------+
//	| Header: MID,   | extended header, | payload: SinkAvail,       |
//	| flags, credits | e.g. SrcAvail    | SrcAvail and Data only    |
//	+----------------+------------------+---------------------------+
//
// Whoever sends appends the headers to a buffer, and the payload behind:
//
//	b = bsdh.Header{MID: bsdh.MIDSrcAvail, Bufs: 8, Len: 32 + n, Seq: 7, Ack: 5}.Append(b[:0])
//	b = bsdh.SrcAvail{Len: 1 << 20, RKey: rkey, Addr: addr}.Append(b)
//	b = append(b, payload...)
//
// Whoever receives reads them in the same order:
//
//	h, err := bsdh.ParseHeader(b)
//	switch h.MID {
//	case bsdh.MIDSrcAvail:
//		avail, err := bsdh.ParseSrcAvail(b[bsdh.HeaderBytes:])
//		inline := h.Payload(b)
//
// Nothing panics, and nothing is allocated but errors, whatever the bytes. Each
// error is an [ErrMalformed] and says which numbers do not fit: such a peer does
// not speak SDP, and its connection is to be aborted.
//
// # Between two softrnics
//
// [Extension] and the messages from [MIDRingUpdate] on are not SDP's. They serve
// sockets that write into a ring at the peer, in bytes of Hello and HelloAck
// and numbers of messages that the protocol leaves unused. A peer that knows
// nothing of them sends zeros there, and never sees one of the messages. Two that have
// no ring make the header of a Data message immediate data: [Brief].
//
// # Sources
//
// The InfiniBand Architecture Specification has SDP in volume 1, annex A4, which
// was not at hand. Layouts are those on which three implementations agree: the
// header files of the OpenIB driver by Topspin (sdp_msgs.h, 2005) and of OFED's
// (sdp.h), and Wireshark's dissector (packet-infiniband_sdp.c).
package bsdh
