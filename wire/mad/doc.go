// Package mad implements the codec of management datagrams (MAD): the 256-byte
// datagrams that the queue pairs 1 of two adapters exchange to establish and
// disconnect connections. It supports the messages of the communication manager
// (CM) and the header that RDMA-CM adds to the private data. Like package wire it has no state, no I/O and
// no clock.
//
// # A datagram
//
// Every one has 256 bytes and travels as a UD SEND from queue pair 1 to queue
// pair 1 with Q_Key 0x80010000:
//
//	0                       24                                         256
//	+-----------------------+------------------------------------------+
//	| Header: class, method,| body, by Header.Attr, for example         |
//	| transaction, Attr     | REQ with 92 bytes of private data        |
//	+-----------------------+------------------------------------------+
//
// [Parse] decodes a datagram. It never panics, and private data is a view of the
// datagram. [Put] writes a complete datagram:
//
//	var b [mad.Size]byte
//	mad.Put(&b, mad.Header{TID: tid, Attr: mad.AttrRTU}, &mad.RTU{LocalID: 1, RemoteID: 2})
//
// # Sources
//
// Layouts are those of the InfiniBand Architecture Specification, volume 1,
// chapter 12, as Linux has them in include/rdma/ibta_vol1_c12.h; the RDMA-CM
// header follows drivers/infiniband/core/cma.c. The tests compare with
// packets that Linux sent.
package mad
