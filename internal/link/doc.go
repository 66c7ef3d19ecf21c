// Package link moves batches of RoCE v2 packets between adapters. A system
// call costs as much as copying hundreds of kilobytes, so everything here
// serves one aim: one call moves many packets.
//
// # From a batch to a system call
//
// The adapter reserves space in a [Batch] and builds its packets there, one
// behind the other. While the destination stays the same and no packet is larger than
// the first, they form a group; a shorter packet closes it:
//
//	Next(A, 4112) Next(A, 4112) Next(A, 300) Next(B, 24) Next(B, 20)
//
//	bytes:  | 4112 | 4112 | 300 | 24 | 20 |
//	groups: |     to A, seg 4112  | to B, 24 |
//
// [Conn.WriteBatch] then turns every group into one message: destination, one
// iovec over its bytes, and, if it has more than one packet, a UDP_SEGMENT
// control message with the size to cut at. A lone group leaves by sendmsg,
// several by one sendmmsg. The kernel carries a group through its stack as one
// buffer and cuts it as late as it can, on loopback never.
//
// The receiver gets such a buffer back whole (UDP_GRO) as one [Datagram], and
// recvmmsg fetches several of them in a call. Their number follows the
// traffic: a ping-pong asks for one at a time.
//
// # The ICRC depends on the grouping
//
// The ICRC covers the IPv4 identification, which a socket cannot choose. It is
// predictable only for an unconnected socket with don't-fragment: 0, and within
// a GSO send the index of the segment. Hence [Batch.Seal] stamps the ICRC last,
// when the groups are known, and again if a group has to leave some other way.
// Wrappers that inject faults or record therefore work on batches: they build
// another one with [Batch.Append], damage packets with [Batch.Corrupt], or look
// at them after Seal.
//
// # Falling back
//
// Features that the system lacks are switched off, see [Conn.Caps]: no
// UDP_SEGMENT before Linux 4.18 or where a send with it fails (the group is
// then sealed and sent again packet by packet), no UDP_GRO before 5.0, no
// sendmmsg in some sandboxes, none of it on other systems. The environment
// variable SOFTRNIC_LINK switches them off one by one: "nogso", "nogro",
// "nommsg", "portable", separated by commas. Packets that the system does not
// send, and on Linux ICMP errors, are counted in [Stats] and reported as
// [Refusal].
//
// # Waiting
//
// ReadBatch never blocks: pollers spin on it. Wait blocks the thread in the
// kernel on socket and eventfd together. The socket is not with Go's
// netpoller, whose wake-ups take twice as long; and since Wake writes the
// eventfd only if a Wait is in progress, redundant calls are cheap.
package link
