// Package iwarp encodes and decodes the wire of iWARP: RDMA over TCP. Each byte of a connection
// after its set-up belongs to an FPDU of MPA (RFC 5044), which carries one segment of DDP (RFC
// 5041), which carries a part of a message of RDMAP (RFC 5040). The package has no I/O, goroutines,
// locks and clocks. The queue pair that uses it is in package qp (stream.go), and the sockets are
// in package rnic.
//
// # Layout
//
// Set-up: the initiator, normally the TCP client, sends a request, and the responder a reply
// ([Handshake], RFC 5044 section 7.1, RFC 6581). No FPDU may follow the request before the reply.
//
//	 0               16      17       18          20
//	+-----------------+-------+--------+-----------+--------------+----------------+
//	| "MPA ID Re. F." | flags | rev. 2 | data len. | IRD, ORD (4) | private data   |
//	+-----------------+-------+--------+-----------+--------------+----------------+
//	flags: 0x80 markers, 0x40 CRC, 0x20 reject, 0x10 the IRD and ORD are there
//
// An FPDU. The length counts the bytes between it and the padding. The CRC32c, of everything before
// it, is stored with its least significant byte first; all other fields are big-endian.
//
//	 0        2                                          multiple of 4
//	+--------+--------------------------------------------+-----+-----------+
//	| length | DDP segment                                | pad | CRC32c    |
//	+--------+--------------------------------------------+-----+-----------+
//
// The header of a segment ([Header]) names the memory (tagged: WRITE and READ responses) or the
// place in one of four queues of messages (untagged: the others).
//
//	 0     1       2         6        10       14        18
//	+-----+-------+---------+------------------+
//	| DDP | RDMAP | STag    | tagged offset    |                   tagged, 14 bytes
//	+-----+-------+---------+--------+--------+--------+
//	| DDP | RDMAP | key/imm | queue  | MSN    | offset |           untagged, 18 bytes
//	+-----+-------+---------+--------+--------+--------+
//	DDP: 0x80 tagged, 0x40 last segment, version 1; RDMAP: version 1 << 6, opcode
//
// Queues: 0 messages and immediate data, 1 requests for READs and atomics, 2 [Terminate], 3 atomic
// responses. Atomics and immediate data are those of RFC 7306, which Linux's siw does not have.
//
// # Beyond the standard
//
// RFC 5040 has no message with immediate data that consumes one receive. Two ends of this package
// recognize each other in reserved bits of the set-up, see [Handshake.Extended], and then use
// [OpSendImm] and [OpSendSEImm], whose immediate data is in the field of the key to invalidate, and
// [OpImmediate] behind a WRITE with immediate data, whose 8 bytes are the length of the WRITE and
// the data. A stranger gets neither.
//
// Markers (RFC 5044 section 4.3) are not implemented: a request for them is rejected.
package iwarp
