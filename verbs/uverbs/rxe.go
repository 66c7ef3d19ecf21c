package uverbs

import "github.com/softrnic/softrnic/verbs"

// The structures of rdma/rdma_user_rxe.h: elements of the queues of rxe devices.

// rxeABIVersion is RXE_UVERBS_ABI_VERSION of drivers/infiniband/sw/rxe/rxe_verbs.h.
const rxeABIVersion = 2

// rxeVendor is RXE_VENDOR_ID of drivers/infiniband/sw/rxe/rxe_param.h. No adapter in hardware has it.
const rxeVendor = 0xffffff

// rxeMaxInline is the maximum of inline data in bytes: that of 32 scatter/gather elements
// (RXE_MAX_INLINE_DATA). QUERY_DEVICE does not report it.
const rxeMaxInline = 32 * 16

// sendElement is struct rxe_send_wqe without the data, which follows.
type sendElement struct {
	id            uint64
	_             uint32
	opcode, flags uint32
	immOrKey      [4]byte    // immediate data, big endian, or the key to invalidate
	request       [15]uint64 // remoteRequest, atomicRequest, datagramRequest or windowRequest
	status, state uint32
	remote        uint64 // address at the peer
	_             [6]uint32
	data          dataInfo
}

type remoteRequest struct {
	addr uint64
	rkey uint32
	_    uint32
}

type atomicRequest struct {
	addr, compareAdd, swap uint64
	rkey                   uint32
	_                      uint32
}

type datagramRequest struct {
	number, qkey uint32
	pkey         uint16
	_            uint16
	ah           uint32
}

type windowRequest struct {
	addr, length       uint64
	lkey, rkey, newKey uint32
	access             uint32
}

// dataInfo is struct rxe_dma_info. The kernel counts in it.
type dataInfo struct {
	length, remaining uint32
	current, count    uint32 // scatter/gather elements
	offset            uint32
	_                 uint32
}

// recvElement is struct rxe_recv_wqe without the scatter/gather elements, which follow.
type recvElement struct {
	id   uint64
	_    [2]uint32
	data dataInfo
}

// completionElement is struct ib_uverbs_wc of rdma/ib_user_verbs.h.
type completionElement struct {
	id             uint64
	status, opcode uint32
	vendorErr      uint32
	bytes          uint32
	immOrKey       [4]byte // immediate data, big endian, or the key that was invalidated
	qpn, source    uint32
	flags          uint32
	pkey, slid     uint16
	sl, pathBits   uint8
	port, _        uint8
}

// sgeSize is the size of struct rxe_sge, which verbs.SGE equals.
const sgeSize = 16

// rxeFlags are the flags of requests that rxe has (enum ib_send_flags); the values are those of
// package verbs.
const rxeFlags = verbs.SendFence | verbs.SendSignaled | verbs.SendSolicited | verbs.SendInline
