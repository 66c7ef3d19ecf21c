// Package bsdh implements the codec of the Sockets Direct Protocol (SDP): the
// messages of two sockets over a reliable connection. It supports the base header
// (BSDH), the extended headers, and the messages Hello and HelloAck, which are
// private data of connection management. Like package wire it has no state, no I/O
// and no clock. The socket implements the protocol.
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
// The sender appends the headers and the payload to a buffer:
//
//	b = bsdh.Header{MID: bsdh.MIDSrcAvail, Bufs: 8, Len: 32 + n, Seq: 7, Ack: 5}.Append(b[:0])
//	b = bsdh.SrcAvail{Len: 1 << 20, RKey: rkey, Addr: addr}.Append(b)
//	b = append(b, payload...)
//
// The receiver parses them in the same order:
//
//	h, err := bsdh.ParseHeader(b)
//	switch h.MID {
//	case bsdh.MIDSrcAvail:
//		avail, err := bsdh.ParseExtended[bsdh.SrcAvail](b[bsdh.HeaderBytes:])
//		inline := h.Payload(b)
//
// The functions never panic and allocate only errors. Each error wraps
// [ErrMalformed] and names the inconsistent values. The connection to such a peer
// should be aborted.
//
// # Between two softrnics
//
// [Extension] and the messages from [MIDRingUpdate] on are softrnic extensions for
// sockets that write into a ring of the peer. They use reserved bytes of Hello and
// HelloAck, and reserved message numbers. Other implementations send zeros in these
// bytes and never receive the messages. Sockets without a ring may send the header
// of a Data message as immediate data: [Brief].
//
// # Sources
//
// The InfiniBand Architecture Specification has SDP in volume 1, annex A4, which
// was not at hand. Layouts are those on which three implementations agree: the
// header files of the OpenIB driver by Topspin (sdp_msgs.h, 2005) and of OFED's
// (sdp.h), and Wireshark's dissector (packet-infiniband_sdp.c).
package bsdh
