package flow

// CreditSender is the sending half of credit-based flow control (section 3.1):
// N buffers of S bytes here and at the peer, a message in each, and a credit
// for each. A message goes out at once or not at all: without a credit Write
// takes nothing, and its caller blocks.
type CreditSender struct {
	mem         []byte // N slots
	stride      int    // from one slot to the next
	headerSize  int    // of a slot, in front of the data
	messageSize int    // bytes of data in a message
	maxInFlight int    // messages in the adapter, at most
	credits     *Credits

	ends        []uint64 // position of the end of the message in each slot
	filledSlots uint64   // messages written, of which
	postedSlots uint64   // so many by Next
	doneSlots   uint64   // so many done

	written, posted, done uint64 // positions: the ends of these
}

// NewCreditSender makes a sender with the send buffer mem, in slots of stride
// bytes that begin with skip bytes of something else, to a peer whose buffers
// take at most peer bytes of data, with at most queue messages in the adapter at
// a time.
func NewCreditSender(mem []byte, stride, skip, peer, queue int, credits *Credits) *CreditSender {
	s := &CreditSender{
		mem: mem, stride: stride, headerSize: skip, maxInFlight: max(1, queue), credits: credits,
		ends: make([]uint64, len(mem)/stride),
	}
	s.Resize(peer)
	return s
}

// Resize makes peer the bytes of data that the peer's buffers take.
func (s *CreditSender) Resize(peer int) { s.messageSize = min(peer, s.stride-s.headerSize) }

// writableSlots that may be filled: those that are free and have a credit.
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

// EndMessage implements Sender: every Write begins another message.
func (s *CreditSender) EndMessage() uint64 { return s.written }

func (s *CreditSender) slotIndex(message uint64) int { return int(message % uint64(len(s.ends))) }

// Next implements Sender. The credit that a message had when it was written may
// have gone to another kind of message since.
func (s *CreditSender) Next() (Message, bool) {
	if s.postedSlots == s.filledSlots || s.postedSlots-s.doneSlots >= uint64(s.maxInFlight) || s.credits.Available() <= ReservedCredits {
		return Message{}, false
	}
	i, from := s.slotIndex(s.postedSlots), s.posted
	s.postedSlots++
	s.posted = s.ends[i]
	most := min(len(s.ends), s.maxInFlight) // messages under way
	return Message{
		Pos: from, Len: int(s.posted - from), Local: i*s.stride + s.headerSize,
		Signal: s.postedSlots%uint64(max(1, most/4)) == 0, Unhurried: 2*(s.postedSlots-s.doneSlots) < uint64(most),
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

// PeerUsed is how much is in messages that no credit has come back for, if they are as long
// as the last ones: what of the peer's buffers is used, which may be little of them.
func (s *CreditSender) PeerUsed() int {
	out := len(s.ends) - max(0, s.credits.Available()-ReservedCredits)
	out = max(0, min(out, len(s.ends), int(s.filledSlots)))
	bytes, in := s.written, int(s.filledSlots)
	if in >= len(s.ends) { // the slot to be filled next has the end of the first of them
		bytes, in = s.written-s.ends[s.slotIndex(s.filledSlots)], len(s.ends)-1
	}
	if in == 0 {
		return out * s.messageSize
	}
	return int(bytes) * out / in
}

// CreditReceiver is the receiving half: N buffers, each of which is a receive
// until a message has come, and again when that has been read.
type CreditReceiver struct {
	slots      int
	queue      []arrival // not read yet
	bytes      int       // in queue
	freedSlots []int     // slots that have been read and not been taken by Free
}

// arrival is a message, or what of it is not read yet, and the slot it lies in.
type arrival struct {
	slot int
	data []byte
}

// NewCreditReceiver makes a receiver with a number of slots.
func NewCreditReceiver(slots int) *CreditReceiver { return &CreditReceiver{slots: slots} }

// Deliver takes note of a message's data, which lies in a slot. It is ErrOverrun
// if there are more messages than slots.
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

// PopFreed returns a slot that has been read and may be posted again.
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

// Receives implements Receiver: as many as there are slots.
func (r *CreditReceiver) Receives() int { return r.slots }
