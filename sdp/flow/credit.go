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
	credits *Credits

	ends   []uint64 // position of the end of the message in each slot
	filled uint64   // messages written, of which
	taken  uint64   // so many by Next
	free   uint64   // so many done

	written, posted, done uint64 // positions: the ends of these
}

// NewCreditSender makes a sender with the send buffer mem, in slots of stride
// bytes that begin with skip bytes of something else, to a peer whose buffers
// take at most peer bytes of data.
func NewCreditSender(mem []byte, stride, skip, peer int, credits *Credits) *CreditSender {
	return &CreditSender{
		mem: mem, stride: stride, skip: skip, size: min(peer, stride-skip), credits: credits,
		ends: make([]uint64, len(mem)/stride),
	}
}

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

func (s *CreditSender) slot(message uint64) int { return int(message % uint64(len(s.ends))) }

// Next implements Sender.
func (s *CreditSender) Next() (Message, bool) {
	if s.taken == s.filled {
		return Message{}, false
	}
	i, from := s.slot(s.taken), s.posted
	s.taken++
	s.posted = s.ends[i]
	quarter := max(1, uint64(len(s.ends)/4))
	return Message{Pos: from, Len: int(s.posted - from), Local: i*s.stride + s.skip, Signal: s.taken%quarter == 0}, true
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

// CreditReceiver is the receiving half: N buffers, each of which is a receive
// until a message has come, and again when that has been read.
type CreditReceiver struct {
	mem    []byte
	stride int // from one slot to the next
	skip   int // of a slot, in front of the data
	slots  int
	queue  []arrival // not read yet
	bytes  int       // in queue
	freed  []int     // slots that have been read and not been taken by Free
}

type arrival struct{ slot, off, end int }

// NewCreditReceiver makes a receiver whose slots are stride bytes long and
// begin with skip bytes of something else.
func NewCreditReceiver(mem []byte, stride, skip int) *CreditReceiver {
	return &CreditReceiver{mem: mem, stride: stride, skip: skip, slots: len(mem) / stride}
}

// Arrived implements Receiver: at is the slot, n counts the data only.
func (r *CreditReceiver) Arrived(at, n int) error {
	if at < 0 || at >= r.slots || n > r.stride-r.skip || len(r.queue) == r.slots {
		return ErrOverrun
	}
	start := at*r.stride + r.skip
	r.queue = append(r.queue, arrival{at, start, start + n})
	r.bytes += n
	return nil
}

// Read implements Receiver.
func (r *CreditReceiver) Read(p []byte) (n int) {
	done := 0
	for done < len(r.queue) {
		a := &r.queue[done]
		k := copy(p[n:], r.mem[a.off:a.end])
		n += k
		a.off += k
		if a.off < a.end {
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
