package mad

// Two softrnics exchange the sizes of their socket receive buffers, so that neither
// overruns the other. The size is carried in KiB in the local EECN of REQ and REP.
// End-to-end contexts exist only for reliable datagrams, which no current adapter
// supports, so other adapters send 0 and ignore the field. A REP carries the size if
// its REQ did.

// EECNOfBuffer returns the local EECN that advertises a receive buffer, 0 if the
// size is unknown or less than 1 KiB.
func EECNOfBuffer(bytes uint32) uint32 { return bytes >> 10 }

// BufferOfEECN returns the size in bytes of the receive buffer that a local EECN
// advertises, 0 if there is none.
func BufferOfEECN(eecn uint32) uint32 { return min(eecn, 1<<22-1) << 10 }
