package flow

// An RDMASender is the sending half of RDMA-based flow control (section 4.1). It tracks the free
// bytes of the peer's ring and packs messages into it back to back. While the ring has free
// bytes, written bytes are posted at once; otherwise they are held back and coalesced into one
// message when the peer reports free bytes.
//
// Held-back bytes leave only in a later call (section 4.2); the caller must show that limitation.
type RDMASender struct {
	sendRing
	credits   *Credits
	peerFreed uint64 // position up to which the peer has read
}

// NewRDMASender returns a sender with the send buffer mem, which it uses from the first bytes on
// as needed, to a ring of remote bytes. At most queue messages are in flight.
func NewRDMASender(mem []byte, first, remote, queue int, credits *Credits) *RDMASender {
	s := &RDMASender{sendRing: newSendRing(mem, first, remote, queue), credits: credits}
	s.updateLimits()
	return s
}

// updateLimits recomputes the limits after the send buffer has grown.
func (s *RDMASender) updateLimits() { s.signalBytes = len(s.mem) / 4 }

// Write implements Sender.
func (s *RDMASender) Write(p []byte) int {
	if s.growFor(len(p)) {
		s.updateLimits()
	}
	return s.writeFrom(p)
}

// Next implements Sender.
func (s *RDMASender) Next() (Message, bool) {
	if s.credits.Available() <= ReservedCredits {
		return Message{}, false
	}
	return s.nextMessage(s.remote - s.PeerUsed())
}

// PeerUsed returns the number of bytes in use in the peer's ring, by its last report.
func (s *RDMASender) PeerUsed() int { return int(s.posted - max(s.peerFreed, s.remoteBase)) }

// SetFreed applies the peer's report that it has read total bytes since the connection began. It
// returns false if fewer bytes were sent.
func (s *RDMASender) SetFreed(total uint64) bool {
	if total > s.posted {
		return false
	}
	s.peerFreed = max(s.peerFreed, total)
	return true
}

// An RDMAReceiver is the receiving half. It has receives for messages of any length, and reports
// free bytes when half of the ring has been read since the last report (the delayed
// acknowledgement of section 3.1). The caller, which counts all kinds of messages, also requests
// a report when half of the receives are used.
type RDMAReceiver struct {
	recvRing
	receives int
	reported uint64 // bytes read at the last report
}

// NewRDMAReceiver returns a receiver with the ring mem and the given number of receives.
func NewRDMAReceiver(mem []byte, receives int) *RDMAReceiver {
	return &RDMAReceiver{recvRing: recvRing{ring: ring{mem: mem}}, receives: receives}
}

// Receives implements Receiver.
func (r *RDMAReceiver) Receives() int { return r.receives }

// ReportFreed returns the number of bytes read since the connection began, and whether a report
// to the peer is due: half of the ring has been read, or news is set.
func (r *RDMAReceiver) ReportFreed(news bool) (freed uint64, due bool) {
	freed = r.bytesRead()
	if 2*(freed-r.reported) < uint64(len(r.mem)) && !news {
		return 0, false
	}
	r.reported = freed
	return freed, true
}
