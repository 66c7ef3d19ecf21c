package qp

// Counters count what a queue pair did, under the names that Linux's rxe uses
// where it has one (rxe_hw_counters.c); all in packets or events.
type Counters struct {
	SentPkts             uint64
	RcvdPkts             uint64
	SentBytes            uint64 // payload
	RcvdBytes            uint64 // payload
	DuplicateRequest     uint64 // requests seen before
	OutOfSeqRequest      uint64 // gaps: requests ahead of the expected PSN, one counted until that comes
	RcvdRNRErr           uint64 // RNR NAKs received
	SendRNRErr           uint64 // RNR NAKs sent
	RcvdSeqErr           uint64 // sequence NAKs received
	SendSeqErr           uint64 // sequence NAKs sent
	AckDeferred          uint64 // acknowledgements saved by coalescing
	RetryExceededErr     uint64
	RetryRNRExceededErr  uint64
	CompleterRetryErr    uint64 // go-backs
	SendErr              uint64 // requests that failed here
	Retransmitted        uint64 // packets sent again
	Timeouts             uint64 // local ACK timeouts
	Probes               uint64 // early questions for an acknowledgement
	RDMASends            uint64 // messages sent, once each
	RDMARecvs            uint64 // messages received
	CNPSent, CNPReceived uint64
	ECNMarked            uint64 // packets that arrived with the congestion mark
	CreditStalls         uint64 // times a message had to wait for a credit
	Unsignaled           uint64 // requests that succeeded without a completion
}
