package qp

// Counters are the counters of a queue pair in packets or events. Names follow
// Linux's rdma_rxe where it has a counterpart (rxe_hw_counters.c).
type Counters struct {
	SentPkts             uint64
	RcvdPkts             uint64
	SentBytes            uint64 // payload
	RcvdBytes            uint64 // payload
	DuplicateRequest     uint64 // requests received before
	OutOfSeqRequest      uint64 // gaps in the request PSNs, each counted once
	RcvdRNRErr           uint64 // RNR NAKs received
	SendRNRErr           uint64 // RNR NAKs sent
	RcvdSeqErr           uint64 // sequence NAKs received
	SendSeqErr           uint64 // sequence NAKs sent
	AckDeferred          uint64 // acknowledgements saved by coalescing
	RetryExceededErr     uint64
	RetryRNRExceededErr  uint64
	CompleterRetryErr    uint64 // go-backs
	SendErr              uint64 // send requests that failed
	Retransmitted        uint64 // retransmitted packets
	Timeouts             uint64 // local ACK timeouts
	Probes               uint64 // probes sent before the timeout
	RDMASends            uint64 // messages sent, without retransmissions
	RDMARecvs            uint64 // messages received
	CNPSent, CNPReceived uint64
	ECNMarked            uint64 // packets that arrived with the congestion mark
	CreditStalls         uint64 // messages that waited for a credit
	Unsignaled           uint64 // requests that succeeded without a completion
}
