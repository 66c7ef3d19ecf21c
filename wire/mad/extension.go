package mad

// Two softrnics tell each other how much the receive buffers of their sockets
// hold, so that neither overruns the other. The number travels as the local
// EECN of REQ and REP, in KiB: end-to-end contexts belong to reliable datagrams
// alone, which no adapter of today has, so nobody else reads the field, and
// others send 0. A REP carries it if its REQ did.

// EECNOfBuffer is the local EECN that announces a receive buffer, 0 for one
// that is unknown or smaller than 1 KiB.
func EECNOfBuffer(bytes uint32) uint32 { return bytes >> 10 }

// BufferOfEECN is the size of the receive buffer in bytes that a local EECN
// announces, 0 if it announces none.
func BufferOfEECN(eecn uint32) uint32 { return min(eecn, 1<<22-1) << 10 }
