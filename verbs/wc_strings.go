package verbs

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
