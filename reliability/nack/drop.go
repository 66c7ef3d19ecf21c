package nack

import "fmt"

// Drop is why a packet was not heeded.
type Drop uint8

// The reasons.
const (
	DropNone             Drop = iota // it was
	DropMalformed                    // no packet of this protocol, or one that says what cannot be
	DropTooLong                      // of a message longer than Options.MaxMessage
	DropStaleDestination             // for another life of ours
	DropOldEpoch                     // of a former life of the peer
	DropPeerClosed                   // of a peer that is closed or lost
	DropDuplicate                    // it has come before
	DropTooFar                       // further ahead than a peer may be
	DropNoMemory                     // before others, and Options.ReorderBytes is used up
	DropUnsentAck                    // about packets that we have not sent
	DropInconsistent                 // it does not fit the message that it is a piece of
	drops
)

var dropNames = [drops]string{"none", "malformed", "too_long", "not_us", "old_epoch", "gone", "duplicate", "too_far", "no_memory", "never_sent", "lie"}

func (d Drop) String() string {
	if int(d) >= len(dropNames) {
		return fmt.Sprintf("Drop(%d)", uint8(d))
	}
	return dropNames[d]
}

// Drops are the reasons to drop a packet.
func Drops() (list []Drop) {
	for d := DropMalformed; d < drops; d++ {
		list = append(list, d)
	}
	return list
}
