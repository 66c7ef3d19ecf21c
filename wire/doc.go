// Package wire is the RoCE v2 codec: bytes to headers and back, the table of
// opcodes, packet sequence numbers, and the invariant CRC. It has no state, no
// I/O and no clock, and imports nothing of softrnic.
//
// # A packet
//
// A RoCE v2 packet is the payload of one UDP datagram to port 4791. This is an
// RDMA WRITE ONLY with immediate, with most of what there can be:
//
//	            0       12             28      32              32+n   +pad   +4
//	+----+-----+-------+--------------+-------+---------------+------+------+
//	| IP | UDP |  BTH  |     RETH     | ImmDt |   payload n   | pad  | ICRC |
//	+----+-----+-------+--------------+-------+---------------+------+------+
//	             |       \________  ________/    0..MTU         0..3   |
//	             |                \/                                   |
//	             |        extended headers,                            CRC-32 of all of it,
//	             |        which the opcode tells                       IP and UDP included
//	             opcode, destination QPN, PSN
//
// Everything here works on the part from BTH to ICRC; the system's UDP socket
// makes and takes the rest. What follows the BTH is told by its opcode, and
// only by the one table behind [Opcode.Info]: which headers, how much payload,
// which place in the message, whether a receive is consumed.
//
// # Reading
//
// [Packet.Parse] makes a Packet a view of a datagram or gives the [Drop] reason
// why it is none. It decodes the BTH; other headers are decoded when asked for,
// and which ones may be asked for stands in Packet.Info. It never panics and
// never allocates, whatever the bytes.
//
// # Writing
//
// Headers write themselves into a slot of the right size with Put. [Compose]
// finds the opcode for a place in a message; its Info().HeaderLen is the size of
// the slot. [Sealer.Seal] comes last, when it is known which identification the
// IPv4 header will carry, because the ICRC covers that too.
//
// # Sources
//
// Layouts and codes are those of the InfiniBand Architecture Specification and
// its RoCE v2 annex, as Linux (rdma_rxe, hfi1, rdmavt), Wireshark and scapy agree
// on them. The tests compare with packets which Linux, scapy and hardware made.
package wire
