package verbs

import "fmt"

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
// Status, QPN, VendorErr and Failure are valid.
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
