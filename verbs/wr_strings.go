package verbs

var wrOpcodeTexts = [...]valueText{
	WRRDMAWrite:        {"RDMA_WRITE", "write local memory to remote memory, without a completion at the peer"},
	WRRDMAWriteWithImm: {"RDMA_WRITE_WITH_IMM", "write local memory to remote memory, then complete a receive of the peer with 32 bits"},
	WRSend:             {"SEND", "send a message into the peer's next receive"},
	WRSendWithImm:      {"SEND_WITH_IMM", "send a message and 32 bits into the peer's next receive"},
	WRRDMARead:         {"RDMA_READ", "read remote memory into local memory"},
	WRAtomicCmpSwap:    {"ATOMIC_CMP_AND_SWP", "replace 8 bytes of remote memory if they equal the expected value, and fetch the old value"},
	WRAtomicFetchAdd:   {"ATOMIC_FETCH_AND_ADD", "add to 8 bytes of remote memory, and fetch the old value"},
	WRLocalInv:         {"LOCAL_INV", "invalidate the RKey of a local memory window"},
	WRBindMW:           {"BIND_MW", "bind a memory window to a part of a region"},
	WRSendWithInv:      {"SEND_WITH_INV", "send a message and invalidate the RKey of a memory window of the peer"},
}

// String is the name of the constant in libibverbs without IBV_WR_, for
// example "ATOMIC_CMP_AND_SWP".
func (o WROpcode) String() string { return lookupText(wrOpcodeTexts[:], o, "WROpcode").name }

func (o WROpcode) descriptionText() string {
	return lookupText(wrOpcodeTexts[:], o, "WROpcode").description
}

var sendFlagTexts = [...]valueText{
	{"FENCE", "start only when all earlier reads and atomics are complete"},
	{"SIGNALED", "report success with a completion as well"},
	{"SOLICITED", "raise a solicited event at the peer"},
	{"INLINE", "copy the data while posting, so that its buffer is free at once"},
	7: {"DELAY_ACK", "permit the peer to delay the acknowledgement"}, // ours
}

// String lists the flags as libibverbs names them without IBV_SEND_, joined
// by "|".
func (f SendFlags) String() string { return flagText(sendFlagTexts[:], f, "SendFlags").name }

func (f SendFlags) descriptionText() string {
	return flagText(sendFlagTexts[:], f, "SendFlags").description
}
