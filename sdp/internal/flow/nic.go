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
	virtual int    // window, as the peer has it
	window  int    // the longest message
	most    int    // bytes of the send buffer that the adapter may have
	few     int    // bytes with which it is busy enough for others to wait
	batch   int    // until they are so many
	pushed  uint64 // position up to which they do not wait
}

// worthwhile is a number of bytes that an adapter sends at a time for little more than half as
// many: measured with system calls of 5 to 8 us for 8 KiB, and of 10 to 12 for 32.
const worthwhile = 32 << 10

// NewNICSender makes a sender with the send buffer mem, of which it uses the first
// bytes until these are not enough, to a ring of remote bytes
// whose virtual window is window bytes, with at most queue messages in the
// adapter at a time. The adapter gets seven eighths of the buffer, and a message
// is not longer than half of it.
func NewNICSender(mem []byte, first, remote, window, queue int) *NICSender {
	s := &NICSender{sendRing: newSendRing(mem, first, remote, queue), virtual: window}
	s.fit()
	return s
}

// fit is when the ring has another length.
func (s *NICSender) fit() {
	n := len(s.mem)
	s.few = max(1, n/8)
	s.most = max(1, n-s.few)
	s.window = max(1, min(s.virtual, n/2))
	s.batch = max(s.window, min(3*n/8, worthwhile)/s.window*s.window)
	// Of messages that are not signaled no more is in flight than leaves room
	// for a window, and than would have others wait.
	s.every = min(s.few/2, s.most-s.window+1)
}

// Write implements Sender.
func (s *NICSender) Write(p []byte) int {
	if s.stretch(len(p)) {
		s.fit()
	}
	return s.put(p)
}

// Next implements Sender.
func (s *NICSender) Next() (Message, bool) {
	s.gather()
	n := min(s.window, s.Unposted())
	waits := s.cut <= s.posted && s.pushed <= s.posted
	if waits && s.inFlight() >= s.few || s.inFlight()+n > s.most {
		return Message{}, false
	}
	return s.next(s.window)
}

// gather lets all windows that are full go when they are enough, or the adapter has less to do.
func (s *NICSender) gather() {
	n := s.Unposted()
	enough := n >= s.batch || n >= s.window && s.inFlight() < s.few
	if enough && s.cut <= s.posted && s.pushed <= s.posted {
		s.pushed = s.head - uint64(n%s.window)
	}
}

// Push lets what has been written go without company.
func (s *NICSender) Push() { s.pushed = s.head }

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
	window, most int
}

// NewNICReceiver makes a receiver with the ring mem and a virtual window, and at
// most so many receives.
func NewNICReceiver(mem []byte, window, most int) *NICReceiver {
	return &NICReceiver{recvRing: recvRing{ring: ring{mem: mem}}, window: window, most: most}
}

// Receives implements Receiver: one for each window that is free.
func (r *NICReceiver) Receives() int { return max(0, min((r.room()-r.window)/r.window, r.most)) }

// Arrived implements RingReceiver.
func (r *NICReceiver) Arrived(at, n int) error {
	if n > r.window {
		return ErrOverrun
	}
	return r.recvRing.Arrived(at, n)
}
