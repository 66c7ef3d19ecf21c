// Package wire implements the RoCE v2 codec: encoding and decoding of headers, the
// table of opcodes, packet sequence numbers (PSN), and the invariant CRC (ICRC). It
// has no state, no I/O and no clock, and imports no other package of softrnic.
//
// # A packet
//
// A RoCE v2 packet is the payload of one UDP datagram to port 4791. This is an
// RDMA WRITE ONLY with immediate:
//
//	            0       12             28      32              32+n   +pad   +4
//	+----+-----+-------+--------------+-------+---------------+------+------+
//	| IP | UDP |  BTH  |     RETH     | ImmDt |   payload n   | pad  | ICRC |
//	+----+-----+-------+--------------+-------+---------------+------+------+
//	             |       \________  ________/    0..MTU         0..3   |
//	             |                \/                                   |
//	             |        extended headers,                            CRC-32 of all of it,
//	             |        defined by the opcode                         IP and UDP included
//	             opcode, destination QPN, PSN
//
// The package handles the part from BTH to ICRC; the system's UDP socket handles
// the rest. The opcode defines the headers after the BTH, the payload length, the
// position in the message and whether a receive is consumed. [Opcode.Info] is the
// only table of opcodes.
//
// # Reading
//
// [Packet.Parse] makes a Packet a view of a datagram, or returns the [Drop] reason if
// the datagram is invalid. It decodes the BTH; methods decode the other headers,
// which Packet.Info lists. Parse never panics and never allocates.
//
// # Writing
//
// Put encodes a header. [Compose] returns the opcode for a position in a message,
// and its Info().HeaderLen is the length of all headers. [ICRC.Put] computes the
// ICRC last, because it covers the identification of the IPv4 header.
//
// # Sources
//
// Layouts and codes are those of the InfiniBand Architecture Specification and
// its RoCE v2 annex, as Linux (rdma_rxe, hfi1, rdmavt), Wireshark and scapy agree
// on them. The tests compare with packets which Linux, scapy and hardware made.
package wire
