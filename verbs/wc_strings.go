package verbs

var wcStatusTexts = [...]valueText{
	WCSuccess: {"SUCCESS", "the work is done"},

	WCLocLenErr: {"LOC_LEN_ERR",
		"the message is longer than the posted receive, or than a request may be; post larger receives (UD: 40 bytes more for the GRH)"},
	WCLocQPOpErr: {"LOC_QP_OP_ERR",
		"the request does not fit its queue pair; check opcode, number of SGEs and the address handle"},
	WCLocEECOpErr: {"LOC_EEC_OP_ERR",
		"the end-to-end context of a reliable datagram is inconsistent; no adapter of today has that transport"},
	WCLocProtErr: {"LOC_PROT_ERR",
		"an SGE names memory that the request may not use; check LKey, range, protection domain, AccessLocalWrite, and that it is still mapped"},
	WCWRFlushErr: {"WR_FLUSH_ERR",
		"the queue pair went to the error state before the request was complete; the first failed completion, or a Modify, tells why"},
	WCMWBindErr: {"MW_BIND_ERR",
		"the memory window could not be bound; check AccessMWBind of the region, the range, and that the window is not bound"},
	WCBadRespErr: {"BAD_RESP_ERR",
		"the peer answered with an opcode or a length that does not belong to this request; the two ends are out of step"},
	WCLocAccessErr: {"LOC_ACCESS_ERR",
		"a write with immediate may not write where it points in local memory; check key, range and access that the peer was given"},
	WCRemInvReqErr: {"REM_INV_REQ_ERR",
		"the responder does not allow the request; check the size of its receive, its access flags and MaxDestRdAtomic"},
	WCRemAccessErr: {"REM_ACCESS_ERR",
		"the request has no access to the responder's memory; check RKey, range, protection domain and remote permission"},
	WCRemOpErr: {"REM_OP_ERR",
		"the responder could not finish the request for a reason of its own, for instance memory unmapped since; look at its completions and events"},
	WCRetryExcErr: {"RETRY_EXC_ERR",
		"the peer did not acknowledge after RetryCnt repetitions; its process, address, port or QPN is wrong or gone, or a firewall is in the way"},
	WCRNRRetryExcErr: {"RNR_RETRY_EXC_ERR",
		"the peer had no receive posted, not even after RNRRetry waits; let it post receives before the sender starts, post more of them, or set RNRRetry to 7 (for ever)"},
	WCLocRDDViolErr: {"LOC_RDD_VIOL_ERR",
		"the reliable datagram domains of queue pair and end-to-end context differ; no adapter of today has that transport"},
	WCRemInvRDReqErr: {"REM_INV_RD_REQ_ERR",
		"the peer refused an invalid reliable datagram request; no adapter of today has that transport"},
	WCRemAbortErr: {"REM_ABORT_ERR",
		"the peer aborted the operation, for instance because it put its queue pair into the error state in the middle of it"},
	WCInvEECNErr: {"INV_EECN_ERR",
		"the number of an end-to-end context is invalid; no adapter of today has reliable datagrams"},
	WCInvEECStateErr: {"INV_EEC_STATE_ERR",
		"the end-to-end context is in a state that does not allow this; no adapter of today has reliable datagrams"},
	WCFatalErr: {"FATAL_ERR",
		"the adapter itself failed and the queue pair is lost; reset it or open the device anew"},
	WCRespTimeoutErr: {"RESP_TIMEOUT_ERR",
		"the answer to a request did not arrive in time"},
	WCGeneralErr: {"GENERAL_ERR",
		"the request failed for a reason that no other status describes; the vendor error tells more"},
	WCTMErr: {"TM_ERR",
		"tag matching failed; needs an SRQ with tag matching"},
	WCTMRndvIncomplete: {"TM_RNDV_INCOMPLETE",
		"the rendezvous of a tagged message was left unfinished, and software has to fetch the rest; needs an SRQ with tag matching"},
}

// String is the name of the constant in libibverbs without IBV_WC_, for
// example "RETRY_EXC_ERR".
func (s WCStatus) String() string { return lookupText(wcStatusTexts[:], s, "WCStatus").name }

// Description describes the status and its usual cause.
func (s WCStatus) Description() string {
	return lookupText(wcStatusTexts[:], s, "WCStatus").description
}

var wcOpcodeTexts = [...]valueText{
	WCSend:      {"SEND", "a message was sent (with or without immediate data or invalidation)"},
	WCRDMAWrite: {"RDMA_WRITE", "a write to remote memory is done (with or without immediate data)"},
	WCRDMARead:  {"RDMA_READ", "a read of remote memory is done, its data is in the local buffer"},
	WCCompSwap:  {"COMP_SWAP", "a remote compare and swap is done, the old value is in the local buffer"},
	WCFetchAdd:  {"FETCH_ADD", "a remote addition is done, the old value is in the local buffer"},
	WCBindMW:    {"BIND_MW", "a memory window is bound and its new RKey may be given away"},
	WCLocalInv:  {"LOCAL_INV", "a memory window of ours is unbound and its RKey is dead"},

	WCRecv:            {"RECV", "a message arrived in the receive"},
	WCRecvRDMAWithImm: {"RECV_RDMA_WITH_IMM", "the peer wrote to our memory and sent 32 bits along, which took the receive but not its buffer"},
}

// String is the name of the constant in libibverbs without IBV_WC_, for
// example "RECV_RDMA_WITH_IMM".
func (o WCOpcode) String() string { return lookupText(wcOpcodeTexts[:], o, "WCOpcode").name }

// Description describes a successful completion with this opcode.
func (o WCOpcode) Description() string {
	return lookupText(wcOpcodeTexts[:], o, "WCOpcode").description
}

var wcFlagTexts = [...]valueText{
	0: {"GRH", "the first 40 bytes of the receive are reserved for the GRH"},
	1: {"WITH_IMM", "immediate data came with the message"},
	3: {"WITH_INV", "the peer invalidated a memory window of ours"},
}

// String lists the flags as libibverbs names them without IBV_WC_, joined by
// "|".
func (f WCFlags) String() string { return flagText(wcFlagTexts[:], f, "WCFlags").name }

// Description describes the flags.
func (f WCFlags) Description() string { return flagText(wcFlagTexts[:], f, "WCFlags").description }
