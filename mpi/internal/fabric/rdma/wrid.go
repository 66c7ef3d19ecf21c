package rdma

// What a work request is, in the top byte of its WRID; then 24 bits of an
// index that depends on it, and 32 bits of its place in its send queue.
const (
	wrRecv     = iota + 1 // index: of the receive buffer
	wrInline              // nothing
	wrBuffer              // index: of the send buffer
	wrTransfer            // index: of the move
	wrSegment             // a piece of a move that is not the last: nothing
	wrStripe              // index: of the move of which a rail brings a part
)

// signalInterval is how many short packets leave for each that is reported.
const signalInterval = 32

func wrid(kind, index int, ordinal uint32) uint64 {
	return uint64(kind)<<56 | uint64(index)<<32 | uint64(ordinal)
}

func unpackWRID(id uint64) (kind, index int, ordinal uint32) {
	return int(id >> 56), int(id >> 32 & 0xffffff), uint32(id)
}

func (l *link) nextWRID(kind, index int) uint64 { return wrid(kind, index, l.posted) }
