package flow

// NICSender is the sending half of NIC-assisted RDMA-based flow control
// (section 5). A part of the send buffer is the adapter's: what is written
// there is posted at once, in messages no longer than the virtual window, and
// waits in the adapter until the peer has posted a receive for it. When that
// part is full what is written stays with the software, and leaves in messages
// as large as possible when the adapter completes one (section 5.2), whether
// the application calls or not.
//
// That part is small for short messages, since each costs as much as a long one,
// and large for those as long as the window, which are not worth waiting for, unless
// windows are short: then some of them go together, for less than each by itself.
//
// The place of a message in the peer's ring is where the last one ended.
// Nothing has to be known about the peer: a receive means that there is room.
type NICSender struct {
	sendRing
	peerWindow int    // window, as the peer has it
	maxMessage int    // the longest message
	maxPosted  int    // bytes of the send buffer that the adapter may have
	busyBytes  int    // bytes with which it is busy enough for others to wait
	batchBytes int    // until they are so many
	flushedPos uint64 // position up to which they do not wait
}

// efficientBatch is a number of bytes that an adapter sends at a time for little more than half as
// many: measured with system calls of 5 to 8 us for 8 KiB, and of 10 to 12 for 32.
const efficientBatch = 32 << 10

// NewNICSender makes a sender with the send buffer mem, of which it uses the first
// bytes until these are not enough, to a ring of remote bytes
// whose virtual window is window bytes, with at most queue messages in the
// adapter at a time. The adapter gets seven eighths of the buffer, and a message
// is not longer than half of it.
func NewNICSender(mem []byte, first, remote, window, queue int) *NICSender {
	s := &NICSender{sendRing: newSendRing(mem, first, remote, queue), peerWindow: window}
	s.updateLimits()
	return s
}

// updateLimits is when the ring has another length.
func (s *NICSender) updateLimits() {
	n := len(s.mem)
	s.busyBytes = max(1, n/8)
	s.maxPosted = max(1, n-s.busyBytes)
	s.maxMessage = max(1, min(s.peerWindow, n/2))
	s.batchBytes = max(s.maxMessage, min(3*n/8, efficientBatch)/s.maxMessage*s.maxMessage)
	// Of messages that are not signaled no more is in flight than leaves room
	// for a window, and than would have others wait.
	s.signalBytes = min(s.busyBytes/2, s.maxPosted-s.maxMessage+1)
}

// Write implements Sender.
func (s *NICSender) Write(p []byte) int {
	if s.growFor(len(p)) {
		s.updateLimits()
	}
	return s.writeFrom(p)
}

// Next implements Sender.
func (s *NICSender) Next() (Message, bool) {
	s.releaseFullWindows()
	n := min(s.maxMessage, s.Unposted())
	waits := s.messageEnd <= s.posted && s.flushedPos <= s.posted
	if waits && s.inFlight() >= s.busyBytes || s.inFlight()+n > s.maxPosted {
		return Message{}, false
	}
	return s.nextMessage(s.maxMessage)
}

// releaseFullWindows lets all windows that are full go when they are enough, or the adapter has less to do.
func (s *NICSender) releaseFullWindows() {
	n := s.Unposted()
	enough := n >= s.batchBytes || n >= s.maxMessage && s.inFlight() < s.busyBytes
	if enough && s.messageEnd <= s.posted && s.flushedPos <= s.posted {
		s.flushedPos = s.head - uint64(n%s.maxMessage)
	}
}

// Flush lets what has been written go without company.
func (s *NICSender) Flush() { s.flushedPos = s.head }

// NICReceiver is the receiving half: the virtual window scheme (section 5.1).
// A receive stands for a window of free bytes, not for any particular ones. A
// message shorter than its window leaves the rest of it free: the windows behind
// it shift, and what is free behind the last becomes another one as soon as
// it is long enough.
//
// The ring is a window longer than what receives are posted for. An adapter
// without a credit may send one message all the same, to find out (IBTA volume
// 1, section 9.7.7.2.5), and the bytes of a WRITE are in place before anybody
// sees that there is no receive for its immediate data.
type NICReceiver struct {
	recvRing
	window, maxReceives int
}

// NewNICReceiver makes a receiver with the ring mem and a virtual window, and at
// most so many receives.
func NewNICReceiver(mem []byte, window, most int) *NICReceiver {
	return &NICReceiver{recvRing: recvRing{ring: ring{mem: mem}}, window: window, maxReceives: most}
}

// Receives implements Receiver: one for each window that is free.
func (r *NICReceiver) Receives() int { return max(0, min((r.free()-r.window)/r.window, r.maxReceives)) }

// Deliver implements RingReceiver.
func (r *NICReceiver) Deliver(at, n int) error {
	if n > r.window {
		return ErrOverrun
	}
	return r.recvRing.Deliver(at, n)
}
