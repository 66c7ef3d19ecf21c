package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// entry is a connection, or a request for datagrams.
type entry struct {
	timer
	prev, next *entry // in a list: of the half-open of a service, or of those in TIMEWAIT

	id          uint32 // our communication id
	remoteID    uint32 // the peer's, 0 if not known yet
	remoteQPN   uint32
	localQPN    uint32
	peer        netip.AddrPort
	state       State
	active      bool   // we sent the REQ
	retries     uint8  // repetitions of each message
	retriesLeft uint8  // repetitions of this one
	mraCount    uint8  // MRAs that were heeded
	psn         uint32 // passive: the REQ's, which tells duplicates from newcomers
	tid         uint64 // of the REQ
	dreqTID     uint64 // of our DREQ

	retryInterval    Time // between repetitions
	timewaitDuration Time // how long
	expiresAt        Time // when an unanswered request of a peer ends

	refusal        error // why messages to the peer are refused, nil if they are not
	attemptRefused bool  // the last repetition of this one was

	unanswered     *[mad.Size]byte // what is repeated until it is answered
	rtuPrivateData []byte          // active: private data of the RTU, to repeat it
	service        *service        // passive, while half-open
	sidrService    mad.ServiceID   // SIDR: what was asked for
}

// entryList is a list of entries, oldest first. An entry is in one at most.
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
