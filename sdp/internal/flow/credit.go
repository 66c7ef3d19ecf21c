package flow

// CreditSender is the sending half of credit-based flow control (section 3.1):
// N buffers of S bytes here and at the peer, a message in each, and a credit
// for each. A message goes out at once or not at all: without a credit Write
// takes nothing, and its caller blocks.
type CreditSender struct {
	mem     []byte // N slots
	stride  int    // from one slot to the next
	skip    int    // of a slot, in front of the data
	size    int    // bytes of data in a message
	queue   int    // messages in the adapter, at most
	credits *Credits

	ends   []uint64 // position of the end of the message in each slot
	filled uint64   // messages written, of which
	taken  uint64   // so many by Next
	free   uint64   // so many done

	written, posted, done uint64 // positions: the ends of these
}

// NewCreditSender makes a sender with the send buffer mem, in slots of stride
// bytes that begin with skip bytes of something else, to a peer whose buffers
// take at most peer bytes of data, with at most queue messages in the adapter at
// a time.
func NewCreditSender(mem []byte, stride, skip, peer, queue int, credits *Credits) *CreditSender {
	s := &CreditSender{
		mem: mem, stride: stride, skip: skip, queue: max(1, queue), credits: credits,
		ends: make([]uint64, len(mem)/stride),
	}
	s.Resize(peer)
	return s
}

// Resize makes peer the bytes of data that the peer's buffers take.
func (s *CreditSender) Resize(peer int) { s.size = min(peer, s.stride-s.skip) }

// slots that may be filled: those that are free and have a credit.
func (s *CreditSender) slots() int {
	waiting := int(s.filled - s.taken)
	return max(0, min(len(s.ends)-int(s.filled-s.free), s.credits.Left()-Reserve-waiting))
}

// Write implements Sender.
func (s *CreditSender) Write(p []byte) (n int) {
	for slots := s.slots(); slots > 0 && n < len(p); slots-- {
		i := s.slot(s.filled)
		k := copy(s.mem[i*s.stride+s.skip:][:s.size], p[n:])
		n += k
		s.written += uint64(k)
		s.ends[i] = s.written
		s.filled++
	}
	return n
}

// Cut implements Sender: every Write begins another message.
func (s *CreditSender) Cut() uint64 { return s.written }

func (s *CreditSender) slot(message uint64) int { return int(message % uint64(len(s.ends))) }

// Next implements Sender. The credit that a message had when it was written may
// have gone to another kind of message since.
func (s *CreditSender) Next() (Message, bool) {
	if s.taken == s.filled || s.taken-s.free >= uint64(s.queue) || s.credits.Left() <= Reserve {
		return Message{}, false
	}
	i, from := s.slot(s.taken), s.posted
	s.taken++
	s.posted = s.ends[i]
	most := min(len(s.ends), s.queue) // messages under way
	return Message{
		Pos: from, Len: int(s.posted - from), Local: i*s.stride + s.skip,
		Signal: s.taken%uint64(max(1, most/4)) == 0, Lazy: 2*(s.taken-s.free) < uint64(most),
	}, true
}

// Done implements Sender.
func (s *CreditSender) Done(pos uint64) {
	for s.free < s.taken && s.ends[s.slot(s.free)] <= pos {
		s.done = s.ends[s.slot(s.free)]
		s.free++
	}
}

// Room implements Sender.
func (s *CreditSender) Room() int { return s.slots() * s.size }

// Unposted implements Sender.
func (s *CreditSender) Unposted() int { return int(s.written - s.posted) }

// Unsent implements Sender.
func (s *CreditSender) Unsent() int { return int(s.written - s.done) }

// Taken is how much is in messages that no credit has come back for, if they are as long
// as the last ones: what of the peer's buffers is used, which may be little of them.
func (s *CreditSender) Taken() int {
	out := len(s.ends) - max(0, s.credits.Left()-Reserve)
	out = max(0, min(out, len(s.ends), int(s.filled)))
	bytes, in := s.written, int(s.filled)
	if in >= len(s.ends) { // the slot to be filled next has the end of the first of them
		bytes, in = s.written-s.ends[s.slot(s.filled)], len(s.ends)-1
	}
	if in == 0 {
		return out * s.size
	}
	return int(bytes) * out / in
}

// CreditReceiver is the receiving half: N buffers, each of which is a receive
// until a message has come, and again when that has been read.
type CreditReceiver struct {
	slots int
	queue []arrival // not read yet
	bytes int       // in queue
	freed []int     // slots that have been read and not been taken by Free
}

// arrival is a message, or what of it is not read yet, and the slot it lies in.
type arrival struct {
	slot int
	data []byte
}

// NewCreditReceiver makes a receiver with a number of slots.
func NewCreditReceiver(slots int) *CreditReceiver { return &CreditReceiver{slots: slots} }

// Arrived takes note of a message's data, which lies in a slot. It is ErrOverrun
// if there are more messages than slots.
func (r *CreditReceiver) Arrived(slot int, data []byte) error {
	if len(r.queue)+len(r.freed) >= r.slots {
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
		r.freed = append(r.freed, a.slot)
		done++
	}
	r.queue = r.queue[:copy(r.queue, r.queue[done:])]
	r.bytes -= n
	return n
}

// Free returns a slot that has been read and may be posted again.
func (r *CreditReceiver) Free() (slot int, ok bool) {
	if len(r.freed) == 0 {
		return 0, false
	}
	slot = r.freed[len(r.freed)-1]
	r.freed = r.freed[:len(r.freed)-1]
	return slot, true
}

// Buffered implements Receiver.
func (r *CreditReceiver) Buffered() int { return r.bytes }

// Receives implements Receiver: as many as there are slots.
func (r *CreditReceiver) Receives() int { return r.slots }
