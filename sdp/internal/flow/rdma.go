package flow

// RDMASender is the sending half of RDMA-based flow control (section 4.1). It
// knows the free bytes of the peer's ring and packs messages into it back to
// back. While there are any, what is written goes out at once; then it stays
// here, and leaves as one message when the peer has reported room.
//
// Its weakness (section 4.2) is its caller's to show: what stays here leaves in
// a later call or not at all.
type RDMASender struct {
	sendRing
	credits   *Credits
	peerFreed uint64 // position up to which the peer has emptied its rings
}

// NewRDMASender makes a sender with the send buffer mem, of which it uses the
// first bytes until these are not enough, to a ring of remote bytes, with at most
// queue messages in the adapter at a time.
func NewRDMASender(mem []byte, first, remote, queue int, credits *Credits) *RDMASender {
	s := &RDMASender{sendRing: newSendRing(mem, first, remote, queue), credits: credits}
	s.updateLimits()
	return s
}

// updateLimits is when the ring has another length.
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

// PeerUsed is how much of the peer's ring is not free, by its last report.
func (s *RDMASender) PeerUsed() int { return int(s.posted - max(s.peerFreed, s.remoteBase)) }

// SetFreed takes the peer's report of how many bytes it has emptied since the
// connection began. It reports whether that can be.
func (s *RDMASender) SetFreed(total uint64) bool {
	if total > s.posted {
		return false
	}
	s.peerFreed = max(s.peerFreed, total)
	return true
}

// RDMAReceiver is the receiving half. It has receives for any messages, small
// as they may be, and reports free room when half of the ring has been emptied
// since the last report (section 3.1's delayed acknowledgement). Half of the
// receives are a reason, too: its caller, who counts the messages of all kinds,
// knows when.
type RDMAReceiver struct {
	recvRing
	receives int
	reported uint64 // bytes, at the last report
}

// NewRDMAReceiver makes a receiver with the ring mem and a number of receives.
func NewRDMAReceiver(mem []byte, receives int) *RDMAReceiver {
	return &RDMAReceiver{recvRing: recvRing{ring: ring{mem: mem}}, receives: receives}
}

// Receives implements Receiver.
func (r *RDMAReceiver) Receives() int { return r.receives }

// ReportFreed returns how many bytes have been read since the connection began, if
// it is time to tell the peer, be it because there are news of receives.
func (r *RDMAReceiver) ReportFreed(news bool) (freed uint64, due bool) {
	freed = r.bytesRead()
	if 2*(freed-r.reported) < uint64(len(r.mem)) && !news {
		return 0, false
	}
	r.reported = freed
	return freed, true
}
