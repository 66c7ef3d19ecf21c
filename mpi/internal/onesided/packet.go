package onesided

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// packetType is the type of a packet of a window. Packets are active messages: Context is the
// context id of the window, Tag the type.
//
//	packet          ID         Length            payload
//	Put             -          -                 target, elements
//	Get             operation  offset in result  target
//	Accumulate      -          -                 target, elements
//	GetAccumulate   operation  offset in result  target, elements
//	CompareAndSwap  operation  0                 target, element, comparand
//	Reply           operation  offset in result  bytes
//	Send            tag        bytes             target: a message follows
//	Fetch           tag        bytes             target: request for a message
//	FetchAdd        id or 0    summand           none, the word of the lock in place of a kind; without id no reply
//	FetchAddReply   id         -                 old value
//	AckRequest      -          -                 none
//	Ack             number of handled packets without a Reply, cumulative
//	Post, Complete  -          -                 none
//	Fence           round      -                 none
//	Broken          rank       -                 none: the rank is lost
//	Find            query      -                 rma.Span: lookup of attached memory
//	Found           query      -                 foundReply
//	Missing         query      -                 missingReply
//	Recall          region     address           none: request to forget the region
//	Returned        region     -                 none: the reply
//
// In a dynamic window the id of a region, 8 bytes, precedes the target.
//
// Synchronous requests an Ack after all packets so far are handled.
type packetType uint8

const (
	packetPut packetType = iota + 1
	packetGet
	packetAccumulate
	packetGetAccumulate
	packetCompareAndSwap
	packetReply
	packetSend
	packetFetch
	packetFetchAdd
	packetFetchAddReply
	packetAckRequest
	packetAck
	packetPost
	packetComplete
	packetFence
	packetBroken
	packetFind
	packetFound
	packetMissing
	packetRecall
	packetReturned
)

// isAccumulate reports whether the packet combines elements with those at the target.
func (k packetType) isAccumulate() bool { return k >= packetAccumulate && k <= packetCompareAndSwap }

// encodeTag returns the Tag of a packet: its type, the element kind and the operation.
func (k packetType) encodeTag(kind datatype.Kind, op datatype.Op) int32 {
	code, _ := op.Code()
	return int32(k) | int32(kind)<<8 | int32(code)<<16
}

var errUnexpectedReply = fmt.Errorf("%w: unexpected reply", protocol.ErrProtocol)

// maxReplies is the maximum number of queued packets to a rank that requests replies, and of
// its messages in progress. A correct peer stays far below it.
const maxReplies = 1 << 14

// maxMessages is the maximum number of messages in progress from or to a rank. The origin
// learns of their completion before the target may, so it is far below maxReplies.
const maxMessages = maxReplies / 4
