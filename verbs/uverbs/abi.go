package uverbs

//lint:file-ignore U1000 fields that this package does not use are part of the kernel's structures

// Numbers of the commands (enum ib_uverbs_write_cmds of rdma/ib_user_verbs.h).
const (
	cmdGetContext    = 0
	cmdQueryDevice   = 1
	cmdQueryPort     = 2
	cmdAllocPD       = 3
	cmdDeallocPD     = 4
	cmdCreateAH      = 5
	cmdDestroyAH     = 8
	cmdRegMR         = 9
	cmdDeregMR       = 13
	cmdAllocMW       = 14
	cmdDeallocMW     = 16
	cmdCreateChannel = 17
	cmdCreateCQ      = 18
	cmdResizeCQ      = 19
	cmdDestroyCQ     = 20
	cmdReqNotifyCQ   = 23
	cmdCreateQP      = 24
	cmdQueryQP       = 25
	cmdModifyQP      = 26
	cmdDestroyQP     = 27
	cmdPostSend      = 28
	cmdAttachMcast   = 30
	cmdDetachMcast   = 31
	cmdCreateSRQ     = 32
	cmdModifySRQ     = 33
	cmdQuerySRQ      = 34
	cmdDestroySRQ    = 35
)

// abiVersion is IB_USER_VERBS_ABI_VERSION of rdma/ib_user_verbs.h.
const abiVersion = 6

// The structures of rdma/ib_user_verbs.h that follow are the bodies of commands, without the
// address of the response with which those begin that have one, and the responses.

// commandHeader is struct ib_uverbs_cmd_hdr. The words have 4 bytes.
type commandHeader struct {
	command           uint32
	inWords, outWords uint16
}

type getContextResponse struct {
	asyncFD          uint32
	completionVector uint32
}

type queryDeviceResponse struct {
	firmware                              uint64
	nodeGUID, systemGUID                  [8]byte // big endian
	maxMRSize, pageSizes                  uint64
	vendorID, vendorPart, hardware        uint32
	maxQP, maxQPWR, capFlags              uint32
	maxSGE, maxSGERead                    uint32
	maxCQ, maxCQE, maxMR, maxPD           uint32
	maxQPReads, maxEEReads, maxReads      uint32
	maxQPInitReads, maxEEInitReads        uint32
	atomicCap                             uint32
	maxEE, maxRDD, maxMW                  uint32
	maxRawIPv6, maxRawEther               uint32
	maxMcastGroups, maxMcastQPs, maxMcast uint32
	maxAH, maxFMR, maxMapFMR              uint32
	maxSRQ, maxSRQWR, maxSRQSGE           uint32
	maxPKeys                              uint16
	ackDelay, ports                       uint8
	_                                     [4]byte
}

type queryPort struct {
	port uint8
	_    [7]byte
}

type queryPortResponse struct {
	capFlags, maxMessage        uint32
	badPKeys, badQKeys          uint32
	gids                        uint32
	pkeys, lid, smLID           uint16
	state, maxMTU, activeMTU    uint8
	lmc, maxVL, smSL            uint8
	subnetTimeout, initType     uint8
	activeWidth, activeSpeed    uint8
	physState, linkLayer, flags uint8
	_                           uint8
}

// handleBody is the body of the commands with only a handle: DEALLOC_PD, DESTROY_AH, DEREG_MR and
// DEALLOC_MW.
type handleBody struct{ handle uint32 }

type allocPDResponse struct{ handle uint32 }

type registerMR struct {
	start, length, iova uint64
	pd, access          uint32
}

type registerMRResponse struct{ handle, lkey, rkey uint32 }

type allocMW struct {
	pd   uint32
	kind uint8
	_    [3]byte
}

type allocMWResponse struct{ handle, rkey uint32 }

type createChannelResponse struct{ fd uint32 }

type createCQ struct {
	userHandle uint64
	depth      uint32
	vector     uint32
	channel    int32
	_          uint32
}

type createCQResponse struct {
	handle, depth uint32
	queue         queueInfo // rxe
}

type resizeCQ struct{ handle, depth uint32 }

type resizeCQResponse struct {
	depth uint32
	_     uint32
	queue queueInfo // rxe
}

// destroyBody is the body of DESTROY_CQ, DESTROY_QP and DESTROY_SRQ.
type destroyBody struct {
	handle uint32
	_      uint32
}

type destroyCQResponse struct{ completions, asyncs uint32 }

// destroyResponse is the response to DESTROY_QP and DESTROY_SRQ: the number of asynchronous events
// of the object that were read.
type destroyResponse struct{ asyncs uint32 }

type notifyCQ struct{ handle, solicited uint32 }

type ahAttr struct {
	dgid                              [16]byte
	flowLabel                         uint32
	sgidIndex, hopLimit, trafficClass uint8
	_                                 uint8
	dlid                              uint16
	sl, pathBits, rate                uint8
	global, port                      uint8
	_                                 uint8
}

type createAH struct {
	userHandle uint64
	pd         uint32
	_          uint32
	attr       ahAttr
}

type createAHResponse struct {
	handle uint32
	number uint32 // rxe
	_      uint32
}

type createQP struct {
	userHandle                   uint64
	pd, sendCQ, recvCQ, srq      uint32
	maxSendWR, maxRecvWR         uint32
	maxSendSGE, maxRecvSGE       uint32
	maxInline                    uint32
	signalAll, kind, hasSRQ, pad uint8
}

type createQPResponse struct {
	handle, number         uint32
	maxSendWR, maxRecvWR   uint32
	maxSendSGE, maxRecvSGE uint32
	maxInline              uint32
	_                      uint32
	recv, send             queueInfo // rxe
}

// qpDestination is struct ib_uverbs_qp_dest.
type qpDestination struct {
	dgid                              [16]byte
	flowLabel                         uint32
	dlid, pad                         uint16
	sgidIndex, hopLimit, trafficClass uint8
	sl, pathBits, rate                uint8
	global, port                      uint8
}

type modifyQP struct {
	destination, alternate    qpDestination
	handle, mask, qkey        uint32
	recvPSN, sendPSN, peer    uint32
	access                    uint32
	pkey, altPKey             uint16
	state, currentState       uint8
	mtu, migration, notifySQD uint8
	maxReads, maxPeerReads    uint8
	rnrTimer, port            uint8
	timeout, retries          uint8
	rnrRetries                uint8
	altPort, altTimeout       uint8
	_                         [2]byte
}

type queryQP struct{ handle, mask uint32 }

type queryQPResponse struct {
	destination, alternate qpDestination
	maxSendWR, maxRecvWR   uint32
	maxSendSGE, maxRecvSGE uint32
	maxInline, qkey        uint32
	recvPSN, sendPSN, peer uint32
	access                 uint32
	pkey, altPKey          uint16
	state, currentState    uint8
	mtu, migration         uint8
	draining               uint8
	maxReads, maxPeerReads uint8
	rnrTimer, port         uint8
	timeout, retries       uint8
	rnrRetries             uint8
	altPort, altTimeout    uint8
	signalAll              uint8
	_                      [5]byte
}

// postSend is the body of POST_SEND without requests, rxe's doorbell.
type postSend struct{ handle, requests, sges, size uint32 }

type postSendResponse struct{ bad uint32 }

type multicast struct {
	group  [16]byte
	handle uint32
	mlid   uint16
	_      uint16
}

type createSRQ struct {
	userHandle               uint64
	pd, maxWR, maxSGE, limit uint32
}

type createSRQResponse struct {
	handle, maxWR, maxSGE, number uint32
	queue                         queueInfo // rxe
	queueNumber, _                uint32    // rxe
}

type modifySRQ struct {
	handle, mask, maxWR, limit uint32
	queue                      uint64 // rxe: address at which the kernel stores a queueInfo
}

type querySRQResponse struct{ maxWR, maxSGE, limit, pad uint32 }

// asyncEvent is struct ib_uverbs_async_event_desc.
type asyncEvent struct {
	element uint64 // userHandle of the object, or the port
	kind    uint32
	_       uint32
}

// completionEvent is struct ib_uverbs_comp_event_desc.
type completionEvent struct{ userHandle uint64 }

// A queueInfo describes a queue that the process maps (struct mminfo of rdma/rdma_user_rxe.h).
type queueInfo struct {
	offset uint64
	size   uint32
	_      uint32
}

// requestSize is the size of struct ib_uverbs_send_wr, which POST_SEND requires as a minimum.
const requestSize = 56
