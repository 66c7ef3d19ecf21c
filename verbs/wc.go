package verbs

import (
	"fmt"
)

// WCStatus is the outcome of a work request (enum ibv_wc_status; the values
// are the same).
type WCStatus uint8

// The statuses. Queue pairs of this module never have WCLocQPOpErr, WCLocEECOpErr,
// WCLocAccessErr, WCLocRDDViolErr, WCRemAbortErr, WCInvEECNErr, WCInvEECStateErr,
// WCFatalErr, WCRespTimeoutErr, WCTMErr and WCTMRndvIncomplete; the table in
// docs/verbs.md has the reasons.
const (
	WCSuccess WCStatus = iota
	WCLocLenErr
	WCLocQPOpErr
	WCLocEECOpErr
	WCLocProtErr
	WCWRFlushErr
	WCMWBindErr
	WCBadRespErr
	WCLocAccessErr
	WCRemInvReqErr
	WCRemAccessErr
	WCRemOpErr
	WCRetryExcErr
	WCRNRRetryExcErr
	WCLocRDDViolErr
	WCRemInvRDReqErr
	WCRemAbortErr
	WCInvEECNErr
	WCInvEECStateErr
	WCFatalErr
	WCRespTimeoutErr
	WCGeneralErr
	WCTMErr
	WCTMRndvIncomplete
)

// WCOpcode is the kind of work that completed (enum ibv_wc_opcode). Bit 7 is set
// for receives.
type WCOpcode uint8

const (
	WCSend            WCOpcode = 0
	WCRDMAWrite       WCOpcode = 1
	WCRDMARead        WCOpcode = 2
	WCCompSwap        WCOpcode = 3
	WCFetchAdd        WCOpcode = 4
	WCBindMW          WCOpcode = 5
	WCLocalInv        WCOpcode = 6
	WCFlush           WCOpcode = 8
	WCAtomicWrite     WCOpcode = 9
	WCRecv            WCOpcode = 128
	WCRecvRDMAWithImm WCOpcode = 129
)

// IsRecv reports whether a receive completed.
func (o WCOpcode) IsRecv() bool { return o&WCRecv != 0 }

// WCFlags are the optional fields of a completion that are valid (enum
// ibv_wc_flags).
type WCFlags uint8

const (
	WCGRH     WCFlags = 1 << 0 // the first 40 bytes of the receive are the GRH area
	WCWithImm WCFlags = 1 << 1 // Imm
	WCWithInv WCFlags = 1 << 3 // InvKey, which was invalidated
)

// WC is a completion (struct ibv_wc). If Status is not WCSuccess, only WRID,
// Status, QPN, VendorErr, Failure and Time are valid.
type WC struct {
	WRID      uint64
	Status    WCStatus
	Opcode    WCOpcode
	Flags     WCFlags
	ByteLen   uint32 // bytes received (including a GRH), read or written
	QPN       uint32 // the local queue pair
	SrcQPN    uint32 // UD: sender
	Imm       uint32
	InvKey    uint32
	VendorErr uint32
	Failure   *Failure // details of a failure; nil on success

	// Time is the time at which the request completed, on the clock that
	// Device.QueryClock reads, in nanoseconds (completion_ts). It is 0 unless
	// CQ.RecordTimes has asked for it, and valid also for failures.
	Time int64
}

// Err returns nil on success and a *CompletionError otherwise.
func (wc *WC) Err() error {
	if wc.Status == WCSuccess {
		return nil
	}
	return &CompletionError{WRID: wc.WRID, QPN: wc.QPN, Status: wc.Status, Failure: wc.Failure}
}

// A Failure explains failed work: the event, its packet, the number of
// attempts, and the likely cause.
type Failure struct {
	Event   string // event, e.g. "peer answered NAK remote access error (0x62)"
	PSN     uint32 // PSN of the packet
	Opcode  string // the request, e.g. "RDMA_WRITE"
	Retries int    // attempts before giving up
	Key     uint32 // lkey or rkey involved, or 0
	Addr    uint64 // address involved
	Length  uint32
	Cause   string // likely cause and advice
	Err     error  // underlying error, for example a *RefusedError, or nil
}

// A CompletionError is a failed completion as an error.
type CompletionError struct {
	WRID    uint64
	QPN     uint32
	Status  WCStatus
	Failure *Failure
}

// Error returns the failure with its cause if known, and otherwise the
// description of the status.
func (e *CompletionError) Error() string {
	s := fmt.Sprintf(textPrefix+"QP 0x%x: work request %d: %v: ", e.QPN, e.WRID, e.Status)
	switch w := e.Failure; {
	case w == nil:
		return s + e.Status.descriptionText()
	case w.Cause == "":
		return s + w.String() + "; " + e.Status.descriptionText()
	default:
		return s + w.String()
	}
}

// Unwrap returns the underlying error, Failure.Err, or nil.
func (e *CompletionError) Unwrap() error {
	if e.Failure == nil {
		return nil
	}
	return e.Failure.Err
}

// String returns the failure in one line.
func (w *Failure) String() string {
	s := w.Event
	if w.Opcode != "" {
		s += fmt.Sprintf(" (%s, PSN %d)", w.Opcode, w.PSN)
	}
	if w.Key != 0 || w.Addr != 0 {
		s += fmt.Sprintf(", key 0x%x, address 0x%x, %d bytes", w.Key, w.Addr, w.Length)
	}
	if w.Retries > 0 {
		s += fmt.Sprintf(", after %d retries", w.Retries)
	}
	if w.Cause != "" {
		s += ": " + w.Cause
	}
	return s
}

var wcStatusTexts = [...]valueText{
	WCSuccess: {"SUCCESS", "the request is complete"},

	WCLocLenErr: {"LOC_LEN_ERR",
		"the message is longer than the posted receive, or than the maximum; post larger receives (UD: 40 bytes more for the GRH)"},
	WCLocQPOpErr: {"LOC_QP_OP_ERR",
		"the request does not fit its queue pair; check opcode, number of SGEs and the address handle"},
	WCLocEECOpErr: {"LOC_EEC_OP_ERR",
		"the end-to-end context of a reliable datagram is inconsistent; no current adapter has this transport"},
	WCLocProtErr: {"LOC_PROT_ERR",
		"the request has no access to the memory of an SGE; check LKey, range, protection domain, AccessLocalWrite, and that it is still mapped"},
	WCWRFlushErr: {"WR_FLUSH_ERR",
		"the queue pair entered the error state before the request was complete; the first failed completion has the cause, unless Modify set the state"},
	WCMWBindErr: {"MW_BIND_ERR",
		"the memory window could not be bound; check AccessMWBind of the region, the range, and that the window is not bound"},
	WCBadRespErr: {"BAD_RESP_ERR",
		"the opcode or the length of the response does not belong to this request; the state of the two queue pairs differs"},
	WCLocAccessErr: {"LOC_ACCESS_ERR",
		"a write with immediate has no access to the local memory; check the key, range and access that the peer has"},
	WCRemInvReqErr: {"REM_INV_REQ_ERR",
		"the responder does not permit the request; check the size of its receive, its access flags and MaxDestRdAtomic"},
	WCRemAccessErr: {"REM_ACCESS_ERR",
		"the request has no access to the responder's memory; check RKey, range, protection domain and remote permission"},
	WCRemOpErr: {"REM_OP_ERR",
		"the responder failed to complete the request, for instance because its memory is no longer mapped; see its completions and events"},
	WCRetryExcErr: {"RETRY_EXC_ERR",
		"no acknowledgement after RetryCnt retransmissions; the peer has terminated, its address, port or QPN is wrong, or a firewall drops packets"},
	WCRNRRetryExcErr: {"RNR_RETRY_EXC_ERR",
		"the peer had no receive posted after RNRRetry retries; post receives before the sender starts, post more of them, or set RNRRetry to 7 (no limit)"},
	WCLocRDDViolErr: {"LOC_RDD_VIOL_ERR",
		"the reliable datagram domains of queue pair and end-to-end context differ; no current adapter has this transport"},
	WCRemInvRDReqErr: {"REM_INV_RD_REQ_ERR",
		"the peer rejected an invalid reliable datagram request; no current adapter has this transport"},
	WCRemAbortErr: {"REM_ABORT_ERR",
		"the peer aborted the operation, for instance because its queue pair entered the error state"},
	WCInvEECNErr: {"INV_EECN_ERR",
		"the number of an end-to-end context is invalid; no current adapter has reliable datagrams"},
	WCInvEECStateErr: {"INV_EEC_STATE_ERR",
		"the state of the end-to-end context does not permit this; no current adapter has reliable datagrams"},
	WCFatalErr: {"FATAL_ERR",
		"the adapter failed; reset the queue pair or reopen the device"},
	WCRespTimeoutErr: {"RESP_TIMEOUT_ERR",
		"the response to a request did not arrive in time"},
	WCGeneralErr: {"GENERAL_ERR",
		"the request failed for a reason without a status of its own; see the vendor error"},
	WCTMErr: {"TM_ERR",
		"tag matching failed; it requires an SRQ with tag matching"},
	WCTMRndvIncomplete: {"TM_RNDV_INCOMPLETE",
		"the rendezvous of a tagged message is incomplete, and software must fetch the remainder; it requires an SRQ with tag matching"},
}

// String is the name of the constant in libibverbs without IBV_WC_, for
// example "RETRY_EXC_ERR".
func (s WCStatus) String() string { return lookupText(wcStatusTexts[:], s, "WCStatus").name }

func (s WCStatus) descriptionText() string {
	return lookupText(wcStatusTexts[:], s, "WCStatus").description
}

var wcOpcodeTexts = [...]valueText{
	WCSend:      {"SEND", "a message was sent (with or without immediate data or invalidation)"},
	WCRDMAWrite: {"RDMA_WRITE", "a write to remote memory is complete (with or without immediate data)"},
	WCRDMARead:  {"RDMA_READ", "a read of remote memory is complete, its data is in the local buffer"},
	WCCompSwap:  {"COMP_SWAP", "a remote compare and swap is complete, the old value is in the local buffer"},
	WCFetchAdd:  {"FETCH_ADD", "a remote addition is complete, the old value is in the local buffer"},
	WCBindMW:    {"BIND_MW", "a memory window is bound and its new RKey is valid"},
	WCLocalInv:  {"LOCAL_INV", "a local memory window is unbound and its RKey is invalid"},

	WCFlush:       {"FLUSH", "earlier writes to the remote memory are visible or persistent, as requested"},
	WCAtomicWrite: {"ATOMIC_WRITE", "8 bytes were written to remote memory at once"},

	WCRecv:            {"RECV", "a message arrived in the receive"},
	WCRecvRDMAWithImm: {"RECV_RDMA_WITH_IMM", "the peer wrote to local memory and sent 32 bits, which consumed the receive but not its buffer"},
}

// String is the name of the constant in libibverbs without IBV_WC_, for
// example "RECV_RDMA_WITH_IMM".
func (o WCOpcode) String() string { return lookupText(wcOpcodeTexts[:], o, "WCOpcode").name }

func (o WCOpcode) descriptionText() string {
	return lookupText(wcOpcodeTexts[:], o, "WCOpcode").description
}

var wcFlagTexts = [...]valueText{
	0: {"GRH", "the first 40 bytes of the receive are reserved for the GRH"},
	1: {"WITH_IMM", "the message has immediate data"},
	3: {"WITH_INV", "the peer invalidated a local memory window"},
}

// String lists the flags as libibverbs names them without IBV_WC_, joined by
// "|".
func (f WCFlags) String() string { return flagText(wcFlagTexts[:], f, "WCFlags").name }

func (f WCFlags) descriptionText() string { return flagText(wcFlagTexts[:], f, "WCFlags").description }
