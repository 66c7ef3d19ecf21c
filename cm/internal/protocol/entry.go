package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/internal/deadline"
	"github.com/softrnic/softrnic/wire/mad"
)

// An entry is a connection or a SIDR request.
type entry struct {
	timer      deadline.Entry[Time]
	prev, next *entry // in a service's halfOpen or in Machine.timewait

	id          uint32 // local communication ID
	remoteID    uint32 // the peer's communication ID, 0 if unknown
	remoteQPN   uint32
	localQPN    uint32
	peer        netip.AddrPort
	state       State
	active      bool   // the local side sent the REQ
	connected   bool   // OnConnect was called, and OnRelease is due
	retries     uint8  // maximum number of retransmissions of each message
	retriesLeft uint8  // remaining retransmissions of the current message
	mraCount    uint8  // MRAs accepted
	psn         uint32 // passive: of the REQ, to tell duplicates from new requests
	tid         uint64 // of the REQ
	dreqTID     uint64 // of the local DREQ

	retryInterval    Time // retransmission timeout
	timewaitDuration Time // length of TIMEWAIT
	expiresAt        Time // time at which a request without a reply expires

	refusal        error // cause of the refusal of messages to the peer, or nil
	attemptRefused bool  // the last transmission of the current message was refused

	unanswered     *[mad.Size]byte // message to retransmit until the reply arrives
	rtuPrivateData []byte          // active: for retransmissions of the RTU
	service        *service        // passive, while half-open
	sidrService    mad.ServiceID   // SIDR: the requested service
}

// An entryList is a doubly linked list of entries, oldest first. An entry is in at most one list.
type entryList struct {
	first, last *entry
	n           int
}

func (l *entryList) push(e *entry) {
	e.prev, e.next = l.last, nil
	if l.last != nil {
		l.last.next = e
	} else {
		l.first = e
	}
	l.last = e
	l.n++
}

func (l *entryList) remove(e *entry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.last = e.prev
	}
	e.prev, e.next = nil, nil
	l.n--
}
