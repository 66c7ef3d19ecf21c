package flow

// A CreditSender is the sending half of credit-based flow control (section 3.1): N buffers of S
// bytes on each side, one message per buffer and one credit per message. A message is sent at
// once or not at all: without a credit Write accepts nothing.
type CreditSender struct {
	mem         []byte // N slots
	stride      int    // distance between slots in bytes
	headerSize  int    // bytes of a slot in front of the data
	messageSize int    // maximum bytes of data in a message
	maxInFlight int    // maximum number of messages in flight
	credits     *Credits

	ends        []uint64 // end position of the message in each slot
	filledSlots uint64   // messages written
	postedSlots uint64   // of these, returned by Next
	doneSlots   uint64   // of these, completed

	written, posted, done uint64 // end positions of the filled, posted and done messages
}

// NewCreditSender returns a sender with the send buffer mem. Its slots have stride bytes, of
// which the first skip are reserved for the header. The peer's buffers hold at most peer bytes of
// data, and at most queue messages are in flight.
func NewCreditSender(mem []byte, stride, skip, peer, queue int, credits *Credits) *CreditSender {
	s := &CreditSender{
		mem: mem, stride: stride, headerSize: skip, maxInFlight: max(1, queue), credits: credits,
		ends: make([]uint64, len(mem)/stride),
	}
	s.Resize(peer)
	return s
}

// Resize sets the number of data bytes that each of the peer's buffers holds.
func (s *CreditSender) Resize(peer int) { s.messageSize = min(peer, s.stride-s.headerSize) }

// writableSlots returns the number of slots that are free and have a credit.
func (s *CreditSender) writableSlots() int {
	waiting := int(s.filledSlots - s.postedSlots)
	return max(0, min(len(s.ends)-int(s.filledSlots-s.doneSlots), s.credits.Available()-ReservedCredits-waiting))
}

// Write implements Sender.
func (s *CreditSender) Write(p []byte) (n int) {
	for slots := s.writableSlots(); slots > 0 && n < len(p); slots-- {
		i := s.slotIndex(s.filledSlots)
		k := copy(s.mem[i*s.stride+s.headerSize:][:s.messageSize], p[n:])
		n += k
		s.written += uint64(k)
		s.ends[i] = s.written
		s.filledSlots++
	}
	return n
}

// EndMessage implements Sender. Every Write begins a new message.
func (s *CreditSender) EndMessage() uint64 { return s.written }

func (s *CreditSender) slotIndex(message uint64) int { return int(message % uint64(len(s.ends))) }

// Next implements Sender. It checks the credits again, because a control message may have used
// the credit that was available in Write.
func (s *CreditSender) Next() (Message, bool) {
	if s.postedSlots == s.filledSlots || s.postedSlots-s.doneSlots >= uint64(s.maxInFlight) || s.credits.Available() <= ReservedCredits {
		return Message{}, false
	}
	i, from := s.slotIndex(s.postedSlots), s.posted
	s.postedSlots++
	s.posted = s.ends[i]
	most := min(len(s.ends), s.maxInFlight) // messages in flight
	return Message{
		Pos: from, Len: int(s.posted - from), Local: i*s.stride + s.headerSize,
		Signal: s.postedSlots%uint64(max(1, most/4)) == 0, DelayAck: 2*(s.postedSlots-s.doneSlots) < uint64(most),
	}, true
}

// CompleteUpTo implements Sender.
func (s *CreditSender) CompleteUpTo(pos uint64) {
	for s.doneSlots < s.postedSlots && s.ends[s.slotIndex(s.doneSlots)] <= pos {
		s.done = s.ends[s.slotIndex(s.doneSlots)]
		s.doneSlots++
	}
}

// Free implements Sender.
func (s *CreditSender) Free() int { return s.writableSlots() * s.messageSize }

// Unposted implements Sender.
func (s *CreditSender) Unposted() int { return int(s.written - s.posted) }

// Unsent implements Sender.
func (s *CreditSender) Unsent() int { return int(s.written - s.done) }

// PeerUsed estimates the number of bytes in messages for which no credit has returned, from the
// average length of the last messages. Each message occupies a whole buffer of the peer.
func (s *CreditSender) PeerUsed() int {
	out := len(s.ends) - max(0, s.credits.Available()-ReservedCredits)
	out = max(0, min(out, len(s.ends), int(s.filledSlots)))
	bytes, in := s.written, int(s.filledSlots)
	if in >= len(s.ends) { // the next slot to fill holds the end of the oldest message
		bytes, in = s.written-s.ends[s.slotIndex(s.filledSlots)], len(s.ends)-1
	}
	if in == 0 {
		return out * s.messageSize
	}
	return int(bytes) * out / in
}

// A CreditReceiver is the receiving half: N buffers, each posted as a receive until a message
// arrives in it, and again after the message has been read.
type CreditReceiver struct {
	slots      int
	queue      []arrival // unread messages
	bytes      int       // sum of the data in queue
	freedSlots []int     // slots read completely, for PopFreed
}

// An arrival is the unread part of a message, and its slot.
type arrival struct {
	slot int
	data []byte
}

// NewCreditReceiver returns a receiver with the given number of slots.
func NewCreditReceiver(slots int) *CreditReceiver { return &CreditReceiver{slots: slots} }

// Deliver enqueues the data of a message in a slot. It returns ErrOverrun if there are more
// messages than slots.
func (r *CreditReceiver) Deliver(slot int, data []byte) error {
	if len(r.queue)+len(r.freedSlots) >= r.slots {
		return ErrOverrun
	}
	r.queue = append(r.queue, arrival{slot, data})
	r.bytes += len(data)
	return nil
}

// Read implements Receiver.
func (r *CreditReceiver) Read(p []byte) (n int) {
	done := 0
	for done < len(r.queue) {
		a := &r.queue[done]
		k := copy(p[n:], a.data)
		n += k
		a.data = a.data[k:]
		if len(a.data) > 0 {
			break
		}
		r.freedSlots = append(r.freedSlots, a.slot)
		done++
	}
	r.queue = r.queue[:copy(r.queue, r.queue[done:])]
	r.bytes -= n
	return n
}

// PopFreed returns a slot that has been read and can be posted again.
func (r *CreditReceiver) PopFreed() (slot int, ok bool) {
	if len(r.freedSlots) == 0 {
		return 0, false
	}
	slot = r.freedSlots[len(r.freedSlots)-1]
	r.freedSlots = r.freedSlots[:len(r.freedSlots)-1]
	return slot, true
}

// Buffered implements Receiver.
func (r *CreditReceiver) Buffered() int { return r.bytes }

// Receives implements Receiver: the number of slots.
func (r *CreditReceiver) Receives() int { return r.slots }

// Credits count the messages for which the peer has receives posted. A connection has one count
// for data and control messages.
type Credits struct {
	bufs uint16 // receives posted, as last advertised by the peer
	ack  uint32 // last message that the peer had received at that time
	seq  uint32 // last message sent
}

// Start sets the initial number of receives, from the peer's Hello.
func (c *Credits) Start(bufs uint16) { *c = Credits{bufs: bufs} }

// NextSeq allocates the next sequence number, which uses a credit.
func (c *Credits) NextSeq() uint32 {
	c.seq++
	return c.seq
}

// LastSeq returns the sequence number of the last message.
func (c *Credits) LastSeq() uint32 { return c.seq }

// Update applies an advertisement from the peer: bufs receives after message ack. It returns
// false if ack acknowledges a message that was not sent. It ignores advertisements older than the
// last one.
func (c *Credits) Update(bufs uint16, ack uint32) bool {
	if int32(c.seq-ack) < 0 {
		return false
	}
	if int32(ack-c.ack) >= 0 { // not older than the last advertisement
		c.bufs, c.ack = bufs, ack
	}
	return true
}

// Available returns the number of messages that may be sent.
func (c *Credits) Available() int { return int(c.bufs) - int(c.seq-c.ack) }

// ReservedCredits is the number of credits that data leaves for control messages.
const ReservedCredits = 2
