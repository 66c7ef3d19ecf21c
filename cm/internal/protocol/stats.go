package protocol

import (
	"strconv"

	"github.com/softrnic/softrnic/wire/mad"
)

// Drop is the reason why a datagram had no effect.
type Drop uint8

// Reasons.
const (
	DropNone          Drop = iota
	DropMalformed          // it is no message of the communication manager
	DropUnknownID          // it belongs to no connection that is known
	DropWrongPeer          // it names a connection of another peer
	DropWrongTID           // it answers another transaction
	DropWrongQPN           // a DREQ that names another queue pair than the connection's
	DropUnexpected         // the connection is in a state where it means nothing
	DropDuplicate          // it came before and needs no new answer
	DropBacklogFull        // the listener has as many half-open connections as it may
	DropPeerShare          // the peer has as many half-open connections as one peer may
	DropTableFull          // there are as many connections as there may be
	DropUnsupported        // APR, which nobody asked for
	DropReservedField      // a communication id of 0, or a path that cannot be
	NumDrops
)

var dropNames = [NumDrops]string{
	"none", "malformed", "unknown_id", "wrong_peer", "wrong_transaction", "wrong_qpn", "unexpected", "duplicate",
	"backlog_full", "peer_share", "table_full", "unsupported", "reserved_field",
}

// String is the name of the reason in snake case, as counters carry it.
func (d Drop) String() string {
	if d < NumDrops {
		return dropNames[d]
	}
	return "drop_" + strconv.Itoa(int(d))
}

// NumMessages is the number of kinds of messages.
const NumMessages = int(mad.AttrAPR-mad.AttrREQ) + 1

// Stats counts what a Machine did.
type Stats struct {
	Sent      [NumMessages]uint64 // by mad.Attr - mad.AttrREQ, repetitions included
	Received  [NumMessages]uint64
	Malformed [mad.NumDrops]uint64 // datagrams that are no message, by reason
	Dropped   [NumDrops]uint64     // datagrams without effect, by reason
	Repeated  uint64               // messages sent again because no answer came in time
	TimedOut  uint64               // connections and requests that ended because no answer came at all
	Evicted   uint64               // half-open connections that gave way to new ones

	Requests  uint64 // connections that peers asked for and that reached a listener
	Connected uint64 // connections that were established
	Rejected  uint64 // connections that we refused

	Connections int // now, in any state
	HalfOpen    int // of these, asked for by peers and not yet established
	Timewait    int // of these, in TIMEWAIT
	SIDR        int // requests for datagrams under way, ours and the peers'
}
