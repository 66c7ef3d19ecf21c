package nack

import "fmt"

// A Drop is the reason why a packet was dropped.
type Drop uint8

// Reasons to drop a packet.
const (
	DropNone             Drop = iota // the packet was not dropped
	DropMalformed                    // not a packet of this protocol, or an invalid header
	DropTooLong                      // the message exceeds Options.MaxMessage
	DropStaleDestination             // addressed to another incarnation of this end
	DropOldEpoch                     // from an earlier incarnation of the peer
	DropPeerClosed                   // the peer is closed or failed
	DropDuplicate                    // received before
	DropTooFar                       // beyond the receive window
	DropNoMemory                     // out of order, and Options.ReorderBytes is exhausted
	DropUnsentAck                    // acknowledges packets that were not sent
	DropInconsistent                 // contradicts earlier fragments of its message
	drops
)

var dropNames = [drops]string{"none", "malformed", "too_long", "stale_destination", "old_epoch", "peer_closed", "duplicate", "too_far", "no_memory", "unsent_ack", "inconsistent"}

// String implements fmt.Stringer.
func (d Drop) String() string {
	if int(d) >= len(dropNames) {
		return fmt.Sprintf("Drop(%d)", uint8(d))
	}
	return dropNames[d]
}

// Drops returns all reasons to drop a packet.
func Drops() (list []Drop) {
	for d := DropMalformed; d < drops; d++ {
		list = append(list, d)
	}
	return list
}
