package protocol

import (
	"strconv"

	"github.com/softrnic/softrnic/wire/mad"
)

// A Drop is the reason for dropping a datagram.
type Drop uint8

// Reasons for dropping a datagram.
const (
	DropNone          Drop = iota
	DropMalformed          // not a communication management MAD
	DropUnknownID          // unknown communication ID
	DropWrongPeer          // the connection belongs to another peer
	DropWrongTID           // reply to another transaction
	DropWrongQPN           // DREQ with a queue pair number other than the connection's
	DropUnexpected         // not valid in the connection's state
	DropDuplicate          // duplicate that needs no reply
	DropBacklogFull        // the listener's backlog is full
	DropPeerShare          // the peer's share of the backlog is full
	DropTableFull          // the connection table is full
	DropUnsupported        // APR without a LAP
	DropReservedField      // communication ID 0 or an invalid path
	NumDrops
)

var dropNames = [NumDrops]string{
	"none", "malformed", "unknown_id", "wrong_peer", "wrong_transaction", "wrong_qpn", "unexpected", "duplicate",
	"backlog_full", "peer_share", "table_full", "unsupported", "reserved_field",
}

// String returns the name of the reason in snake case, as in counter names.
func (d Drop) String() string {
	if d < NumDrops {
		return dropNames[d]
	}
	return "drop_" + strconv.Itoa(int(d))
}

// NumMessages is the number of message types.
const NumMessages = int(mad.AttrAPR-mad.AttrREQ) + 1

// Stats are the counters of a Machine.
type Stats struct {
	Sent          [NumMessages]uint64 // by mad.Attr - mad.AttrREQ, including retransmissions
	Received      [NumMessages]uint64
	Malformed     [mad.NumDrops]uint64 // by reason
	Dropped       [NumDrops]uint64     // by reason
	Retransmitted uint64               // retransmissions
	TimedOut      uint64               // connections and requests that ended for lack of a reply
	Evicted       uint64               // half-open connections removed in favor of new ones

	Requests  uint64 // connection requests that reached a listener
	Connected uint64 // connections established
	Rejected  uint64 // connections rejected locally

	Connections int // current number, in any state
	HalfOpen    int // of these, half-open
	TimeWait    int // of these, in TIMEWAIT
	SIDR        int // outstanding SIDR requests of both sides
}
