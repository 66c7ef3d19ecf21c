package uverbs

// The commands and structures of rdma/rdma_user_cm.h, the ABI of /dev/infiniband/rdma_cm: a command is
// one write(2) of a header and a structure, which has the address of the response.

// cmABIVersion is RDMA_USER_CM_ABI_VERSION.
const cmABIVersion = 4

// Commands (enum rdma_user_cm_cmd).
const (
	cmCmdCreateID     = 0
	cmCmdDestroyID    = 1
	cmCmdResolveRoute = 4
	cmCmdConnect      = 6
	cmCmdListen       = 7
	cmCmdAccept       = 8
	cmCmdReject       = 9
	cmCmdDisconnect   = 10
	cmCmdInitQPAttr   = 11
	cmCmdGetEvent     = 12
	cmCmdSetOption    = 14
	cmCmdQuery        = 19
	cmCmdBind         = 20
	cmCmdResolveAddr  = 21
)

// Events (enum rdma_cm_event_type of rdma/rdma_cm.h).
const (
	cmEventAddrResolved    = 0
	cmEventAddrError       = 1
	cmEventRouteResolved   = 2
	cmEventRouteError      = 3
	cmEventConnectRequest  = 4
	cmEventConnectResponse = 5
	cmEventConnectError    = 6
	cmEventUnreachable     = 7
	cmEventRejected        = 8
	cmEventEstablished     = 9
	cmEventDisconnected    = 10
	cmEventDeviceRemoval   = 11
	cmEventTimewaitExit    = 15
)

// cmPrivateData is RDMA_MAX_PRIVATE_DATA.
const cmPrivateData = 256

// cmHeader is struct rdma_ucm_cmd_hdr. The lengths are in bytes, without the header.
type cmHeader struct {
	command uint32
	in, out uint16
}

// cmCreateID is struct rdma_ucm_create_id.
type cmCreateID struct {
	uid, response uint64
	space         uint16
	kind          uint8 // verbs.QPType
	_             [5]uint8
}

// cmID is struct rdma_ucm_create_id_resp and rdma_ucm_disconnect.
type cmID struct{ id uint32 }

// cmDestroyID is struct rdma_ucm_destroy_id.
type cmDestroyID struct {
	response uint64
	id, _    uint32
}

// cmDestroyIDResponse is struct rdma_ucm_destroy_id_resp.
type cmDestroyIDResponse struct{ _ uint32 }

// cmAddr is struct __kernel_sockaddr_storage.
type cmAddr [128]byte

// cmBind is struct rdma_ucm_bind.
type cmBind struct {
	id      uint32
	size, _ uint16
	addr    cmAddr
}

// cmResolveAddr is struct rdma_ucm_resolve_addr.
type cmResolveAddr struct {
	id, timeout                 uint32 // ms
	sourceSize, destinationSize uint16
	_                           uint32
	sourceAddr, destinationAddr cmAddr
}

// cmResolveRoute is struct rdma_ucm_resolve_route.
type cmResolveRoute struct{ id, timeout uint32 }

// cmQuery is struct rdma_ucm_query, for the option RDMA_USER_CM_QUERY_ADDR.
type cmQuery struct {
	response   uint64
	id, option uint32
}

// cmQueryAddrResponse is struct rdma_ucm_query_addr_resp up to its device index, which older kernels
// do not have.
type cmQueryAddrResponse struct {
	_                   [8]byte
	_, _                uint8
	_, _, _             uint16
	source, destination cmAddr
}

// cmConnParam is struct rdma_ucm_conn_param.
type cmConnParam struct {
	number, _                uint32
	private                  [cmPrivateData]byte
	privateLength, srq       uint8
	served, issued           uint8 // responder resources and initiator depth
	flowControl              uint8
	retries, rnrRetries, set uint8
}

// cmConnect is struct rdma_ucm_connect without the fields of enhanced connections.
type cmConnect struct {
	param cmConnParam
	id, _ uint32
}

// cmListen is struct rdma_ucm_listen.
type cmListen struct{ id, backlog uint32 }

// cmAccept is struct rdma_ucm_accept without the fields of enhanced connections.
type cmAccept struct {
	uid   uint64
	param cmConnParam
	id, _ uint32
}

// cmReject is struct rdma_ucm_reject.
type cmReject struct {
	id                    uint32
	privateLength, reason uint8
	_                     [2]uint8
	private               [cmPrivateData]byte
}

// cmInitQPAttr is struct rdma_ucm_init_qp_attr.
type cmInitQPAttr struct {
	response  uint64
	id, state uint32
}

// cmQPAttr is struct ib_uverbs_qp_attr of rdma/ib_user_verbs.h.
type cmQPAttr struct {
	mask, _, _, mtu, _, qkey       uint32
	recvPSN, sendPSN, peer, access uint32
	destination, _                 ahAttr
	_                              [5]uint32
	pkey, _                        uint16
	_, _                           uint8
	maxReads, maxPeerReads         uint8
	rnrTimer, port, timeout        uint8
	retries, rnrRetries            uint8
	_, _                           uint8
	_                              [5]uint8
}

// cmGetEvent is struct rdma_ucm_get_event.
type cmGetEvent struct{ response uint64 }

// cmEvent is struct rdma_ucm_event_resp without the fields of enhanced connections. The parameters of
// datagrams are longer than those of connections.
type cmEvent struct {
	uid               uint64
	id, event, status uint32
	param             cmConnParam
	_                 [32]byte
	_                 uint32
}

// cmSetOption is struct rdma_ucm_set_option.
type cmSetOption struct {
	value                     uint64
	id, level, option, length uint32
}

// cmQueryAddr is RDMA_USER_CM_QUERY_ADDR, and cmOptionLevelID RDMA_OPTION_ID.
const (
	cmQueryAddr     = 0
	cmOptionLevelID = 0
)

// cmOptionAckTimeout is RDMA_OPTION_ID_ACK_TIMEOUT of the level RDMA_OPTION_ID, 0.
const cmOptionAckTimeout = 3
