package rdma

// The kind of a work request is the top byte of its WRID; 24 bits of an index that depends on the kind and 32 bits of the
// ordinal in its send queue follow.
const (
	wrRecv     = iota + 1 // index of the receive buffer
	wrInline              // no index
	wrBuffer              // index of the send buffer
	wrTransfer            // index of the transfer
	wrSegment             // a segment of a transfer except the last
	wrStripe              // index of the transfer, for a stripe on a rail
)

// signalInterval is the number of inline packets per signaled one.
const signalInterval = 32

func wrid(kind, index int, ordinal uint32) uint64 {
	return uint64(kind)<<56 | uint64(index)<<32 | uint64(ordinal)
}

func unpackWRID(id uint64) (kind, index int, ordinal uint32) {
	return int(id >> 56), int(id >> 32 & 0xffffff), uint32(id)
}

func (l *link) nextWRID(kind, index int) uint64 { return wrid(kind, index, l.posted) }
