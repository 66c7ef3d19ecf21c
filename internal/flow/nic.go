package flow

// A NICSender is the sending half of NIC-assisted RDMA-based flow control (section 5). Part of
// the send buffer belongs to the adapter: bytes written there are posted at once, in messages no
// longer than the virtual window, and wait in the adapter until the peer has posted a receive.
// When that part is full, later bytes remain with the software and are coalesced into messages as
// large as possible, which are posted as the adapter completes earlier ones (section 5.2), also
// outside of calls.
//
// The adapter's part is small for short messages, since each costs as much as a long one, and
// large for messages of a full window, which gain nothing by coalescing. Short windows are posted
// in batches, which cost less than single ones.
//
// A message is placed in the peer's ring where the last one ended. The sender needs no state of
// the peer: a posted receive implies free bytes.
type NICSender struct {
	sendRing
	peerWindow int    // window advertised by the peer
	maxMessage int    // maximum message length
	maxPosted  int    // maximum bytes posted to the adapter
	busyBytes  int    // bytes in flight above which short messages are held back
	batchBytes int    // bytes of full windows to post at a time
	flushedPos uint64 // position up to which nothing is held back
}

// efficientBatch is the number of bytes that an adapter sends in one system call for little more
// than half as many: a call takes 5 to 8 us for 8 KiB and 10 to 12 us for 32 KiB (docs/sdp.md).
const efficientBatch = 32 << 10

// NewNICSender returns a sender with the send buffer mem, which it uses from the first bytes on
// as needed, to a ring of remote bytes with a virtual window of window bytes. At most queue
// messages are in flight. The adapter gets seven eighths of the buffer, and a message has at most
// half of it.
func NewNICSender(mem []byte, first, remote, window, queue int) *NICSender {
	s := &NICSender{sendRing: newSendRing(mem, first, remote, queue), peerWindow: window}
	s.updateLimits()
	return s
}

// updateLimits recomputes the limits after the send buffer has grown.
func (s *NICSender) updateLimits() {
	n := len(s.mem)
	s.busyBytes = max(1, n/8)
	s.maxPosted = max(1, n-s.busyBytes)
	s.maxMessage = max(1, min(s.peerWindow, n/2))
	s.batchBytes = max(s.maxMessage, min(3*n/8, efficientBatch)/s.maxMessage*s.maxMessage)
	// Unsignaled messages in flight must leave space for a window and must not hold back others.
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

// releaseFullWindows releases all full windows if they make a batch or the adapter is not busy.
func (s *NICSender) releaseFullWindows() {
	n := s.Unposted()
	enough := n >= s.batchBytes || n >= s.maxMessage && s.inFlight() < s.busyBytes
	if enough && s.messageEnd <= s.posted && s.flushedPos <= s.posted {
		s.flushedPos = s.head - uint64(n%s.maxMessage)
	}
}

// Flush releases all written bytes without coalescing.
func (s *NICSender) Flush() { s.flushedPos = s.head }

// A NICReceiver is the receiving half: the virtual window scheme (section 5.1). A posted receive
// represents a window of free bytes at no fixed place. A message shorter than its window leaves
// the remainder free: the following windows shift, and the free bytes after the last become
// another window when they suffice.
//
// The ring is one window longer than the posted receives need. An adapter without a credit may
// send one message as a probe (IBTA volume 1, section 9.7.7.2.5), and the bytes of a WRITE are in
// memory before the missing receive for its immediate data is detected.
type NICReceiver struct {
	recvRing
	window, maxReceives int
}

// NewNICReceiver returns a receiver with the ring mem, a virtual window in bytes and at most most
// receives.
func NewNICReceiver(mem []byte, window, most int) *NICReceiver {
	return &NICReceiver{recvRing: recvRing{ring: ring{mem: mem}}, window: window, maxReceives: most}
}

// Receives implements Receiver: one receive per free window.
func (r *NICReceiver) Receives() int { return max(0, min((r.free()-r.window)/r.window, r.maxReceives)) }

// Deliver implements RingReceiver.
func (r *NICReceiver) Deliver(at, n int) error {
	if n > r.window {
		return ErrOverrun
	}
	return r.recvRing.Deliver(at, n)
}

// Spill moves unread bytes out of the ring, up to a total of most bytes outside of it, and
// returns their number, which is free in the ring again. The order of Read is unchanged.
func (r *NICReceiver) Spill(most int) int {
	n := min(most-r.Spilled(), r.len())
	if n <= 0 {
		return 0
	}
	to := &r.spillBeforeOld
	if r.old.mem != nil { // old frees no bytes of the ring and remains
		to = &r.spillAfterOld
	}
	return r.readInto(to.grow(n))
}

// Spilled returns the number of unread bytes outside of the ring.
func (r *NICReceiver) Spilled() int { return r.spillBeforeOld.len() + r.spillAfterOld.len() }
