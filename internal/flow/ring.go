package flow

import (
	"cmp"
	"errors"
	"math"
)

// A ring is a byte queue. Its positions count all bytes that ever passed through it and its
// predecessors.
type ring struct {
	mem  []byte
	base uint64 // position of offset 0
	head uint64 // position after the last byte written
	tail uint64 // position of the next byte to read
}

func (r *ring) len() int { return int(r.head - r.tail) }

func (r *ring) free() int { return len(r.mem) - r.len() }

// offsetOf returns the offset of a position.
func (r *ring) offsetOf(pos uint64) int { return ringOffset(pos, r.base, len(r.mem)) }

// ringOffset returns the offset of pos in a ring of n bytes that begins with position base.
func ringOffset(pos, base uint64, n int) int { return int((pos - base) % uint64(n)) }

// contiguous returns how many of the n bytes from pos are contiguous in memory.
func (r *ring) contiguous(pos uint64, n int) int { return min(n, len(r.mem)-r.offsetOf(pos)) }

// writeFrom copies as much of p as fits into the ring and returns the number of bytes copied.
func (r *ring) writeFrom(p []byte) int {
	n := min(len(p), r.free())
	k := copy(r.mem[r.offsetOf(r.head):], p[:n])
	copy(r.mem, p[k:n])
	r.head += uint64(n)
	return n
}

// readInto copies buffered bytes to p and returns their number.
func (r *ring) readInto(p []byte) int {
	n := min(len(p), r.len())
	if n == 0 {
		return 0 // mem may be empty
	}
	k := copy(p[:n], r.mem[r.offsetOf(r.tail):])
	copy(p[k:n], r.mem)
	r.tail += uint64(n)
	return n
}

// A sendRing is the send buffer of the modes that write to a ring at the peer. It tracks written,
// posted and completed bytes.
//
// The ring uses the first part of its memory until that is too short for a Write, so a connection
// with short messages reuses a few cached pages and touches no others. A grown ring continues
// after its former end, and wraps to its beginning when all bytes from before the growth are
// completed.
type sendRing struct {
	ring                               // in the first part of all; head is written, tail is completed
	all              []byte            // the whole buffer
	prevRing         ring              // holds the bytes before grownAt
	grownAt          uint64            // position at which the ring grew
	posted           uint64            // position up to which bytes are posted
	remote           int               // length of the peer's ring
	remoteBase       uint64            // position at offset 0 of the peer's ring
	messageEnd       uint64            // position at which a message must end
	maxInFlight      int               // maximum number of messages in flight
	signalBytes      int               // bytes after which a message is signaled
	outstanding      int               // messages posted and not completed
	unsignaled       int               // of these, posted after the last signaled one
	unsignaledBytes  int               // bytes in the unsignaled messages
	signaledMessages []signaledMessage // signaled messages that are not completed
	lastSignaled     uint64            // end of the last signaled message
}

// A signaledMessage is a signaled message with the number of messages that its completion covers.
type signaledMessage struct {
	end    uint64
	covers int
}

func newSendRing(mem []byte, first, remote, queue int) sendRing {
	return sendRing{ring: ring{mem: mem[:min(cmp.Or(first, len(mem)), len(mem))]}, all: mem, remote: remote, maxInFlight: max(1, queue)}
}

// growFor grows the ring if n bytes do not fit and growth helps. It reports whether the ring
// grew.
func (s *sendRing) growFor(n int) bool {
	if room := s.free(); n <= room || s.freeAfterGrowth() <= room {
		return false
	}
	s.prevRing, s.grownAt = s.ring, s.head
	s.base = s.head - uint64(len(s.mem))
	s.mem = s.all[:s.nextLength()]
	return true
}

// GrownLength returns the length of a ring that replaces a too short one of n bytes.
func GrownLength(n int) int { return 16 * min(n, math.MaxInt32/16) }

// nextLength returns the length of the ring after growth.
func (s *sendRing) nextLength() int { return min(GrownLength(len(s.mem)), len(s.all)) }

// freeAfterGrowth returns the number of free bytes after growth.
func (s *sendRing) freeAfterGrowth() int {
	switch {
	case s.tail < s.grownAt: // the last growth is incomplete
		return 0
	case s.len() == 0:
		return s.nextLength()
	}
	return s.nextLength() - len(s.mem)
}

// free returns the number of bytes that may be written. After growth only the new part is free
// until all bytes before grownAt are completed.
func (s *sendRing) free() int {
	if s.tail < s.grownAt {
		return len(s.mem) - len(s.prevRing.mem) - int(s.head-s.grownAt)
	}
	return s.ring.free()
}

// writeFrom copies as much of p as fits and returns the number of bytes copied.
func (s *sendRing) writeFrom(p []byte) int { return s.ring.writeFrom(p[:min(len(p), s.free())]) }

// contiguousAt returns the offset of pos and how many of the n bytes from there are contiguous.
func (s *sendRing) contiguousAt(pos uint64, n int) (at, length int) {
	r := &s.ring
	if pos < s.grownAt {
		r, n = &s.prevRing, min(n, int(s.grownAt-pos))
	}
	return r.offsetOf(pos), r.contiguous(pos, n)
}

// EndMessage implements Sender.
func (s *sendRing) EndMessage() uint64 {
	s.messageEnd = s.head
	return s.messageEnd
}

// Free implements Sender.
func (s *sendRing) Free() int { return max(s.free(), s.freeAfterGrowth()) }

// Unposted implements Sender.
func (s *sendRing) Unposted() int { return int(s.head - s.posted) }

// Unsent implements Sender.
func (s *sendRing) Unsent() int { return s.len() }

// SwitchRing makes the next message the first in another ring of the peer, with remote bytes.
func (s *sendRing) SwitchRing(remote int) { s.remote, s.remoteBase = remote, s.posted }

// inFlight returns the number of bytes posted and not completed.
func (s *sendRing) inFlight() int { return int(s.posted - s.tail) }

// nextMessage returns a message of at most limit bytes. A message is signaled every quarter of
// maxInFlight messages, every signalBytes bytes, and at the end of the bytes before a growth, so
// a completion is always outstanding when the limits block the sender.
func (s *sendRing) nextMessage(limit int) (Message, bool) {
	if s.outstanding >= s.maxInFlight {
		return Message{}, false
	}
	local, n := s.contiguousAt(s.posted, min(s.Unposted(), limit))
	at := ringOffset(s.posted, s.remoteBase, s.remote)
	n = min(n, s.remote-at)
	if s.messageEnd > s.posted {
		n = min(n, int(s.messageEnd-s.posted))
	}
	if n <= 0 {
		return Message{}, false
	}
	m := Message{Pos: s.posted, Len: n, Local: local, Remote: at}
	s.posted += uint64(n)
	s.outstanding++
	s.unsignaled++
	s.unsignaledBytes += n
	if s.unsignaledBytes >= s.signalBytes || s.unsignaled >= max(1, s.maxInFlight/4) || s.posted >= s.grownAt && s.lastSignaled < s.grownAt {
		m.Signal = true
		s.lastSignaled = s.posted
		s.signaledMessages = append(s.signaledMessages, signaledMessage{s.posted, s.unsignaled})
		s.unsignaled, s.unsignaledBytes = 0, 0
	}
	return m, true
}

// CompleteUpTo implements Sender.
func (s *sendRing) CompleteUpTo(pos uint64) {
	n := 0
	for n < len(s.signaledMessages) && s.signaledMessages[n].end <= pos {
		s.outstanding -= s.signaledMessages[n].covers
		s.tail = s.signaledMessages[n].end
		n++
	}
	s.signaledMessages = s.signaledMessages[:copy(s.signaledMessages, s.signaledMessages[n:])]
	if pos >= s.posted { // unsignaled messages after the last signaled one
		s.outstanding -= s.unsignaled
		s.tail, s.lastSignaled = s.posted, s.posted
		s.unsignaled, s.unsignaledBytes = 0, 0
	}
}

// A RingReceiver is the receiving half of a mode with a receive ring.
type RingReceiver interface {
	Receiver

	// Deliver records n bytes at offset at of the ring. It returns ErrOverrun or ErrMisplaced if
	// the peer violated the protocol.
	Deliver(at, n int) error

	// ChangeRing prepares a replacement of the ring. It returns false if mem is shorter than the
	// ring or the last change is incomplete.
	ChangeRing(mem []byte) bool

	// HalfFull reports whether more than half of the ring is in use.
	HalfFull() bool

	// SwitchRing makes the ring of ChangeRing the one that all later data arrives in. It returns
	// false if no change is prepared.
	SwitchRing() bool

	// ChangingRing reports whether a change is incomplete: from ChangeRing until all data in the
	// old ring has been read. Then the old ring's memory is unused.
	ChangingRing() bool
}

// ErrMisplaced reports data at another place of the ring than behind the last message, a protocol
// violation by the peer.
var ErrMisplaced = errors.New("flow: ring write not contiguous with the last message")

// A recvRing is the receive buffer of the modes in which the peer writes to a ring. During a ring
// change it has two rings.
type recvRing struct {
	ring           // new data arrives here
	old     ring   // unread data that arrived before SwitchRing
	nextMem []byte // ring of ChangeRing, until SwitchRing

	spillBeforeOld, spillAfterOld spill // data moved out of ring, to be read before and after old
}

// Deliver implements RingReceiver.
func (r *recvRing) Deliver(at, n int) error {
	if n < 0 || n > r.free() {
		return ErrOverrun
	}
	if at != r.offsetOf(r.head) || at+n > len(r.mem) {
		return ErrMisplaced
	}
	r.head += uint64(n)
	return nil
}

// Read implements Receiver.
func (r *recvRing) Read(p []byte) int {
	n := r.spillBeforeOld.readInto(p)
	if r.old.mem != nil {
		n += r.old.readInto(p[n:])
		if r.old.len() == 0 {
			r.old = ring{}
			r.spillBeforeOld, r.spillAfterOld = r.spillAfterOld, spill{}
			n += r.spillBeforeOld.readInto(p[n:])
		}
	}
	return n + r.readInto(p[n:])
}

// Buffered implements Receiver.
func (r *recvRing) Buffered() int {
	return r.spillBeforeOld.len() + r.old.len() + r.spillAfterOld.len() + r.len()
}

// Peek returns the next len(buf) unread bytes without consuming them, fewer if there are fewer:
// those in the ring if they are contiguous there, else a copy in buf. They remain valid until the
// next Read or Discard.
func (r *recvRing) Peek(buf []byte) []byte {
	if n := len(buf); r.Buffered() == r.len() && n <= r.len() && r.contiguous(r.tail, n) == n {
		at := r.offsetOf(r.tail)
		return r.mem[at : at+n]
	}
	unread := *r // a Read from the copy consumes nothing
	return buf[:unread.Read(buf)]
}

// Discard consumes the next n unread bytes, which must have arrived.
func (r *recvRing) Discard(n int) {
	if r.Buffered() == r.len() {
		r.tail += uint64(n)
		return
	}
	r.Read(make([]byte, n))
}

// WriteOffset returns the offset in the ring at which the peer must write next.
func (r *recvRing) WriteOffset() int { return r.offsetOf(r.head) }

// Free returns the number of free bytes of the ring.
func (r *recvRing) Free() int { return r.free() }

// bytesRead returns the number of bytes read since the connection began.
func (r *recvRing) bytesRead() uint64 { return r.head - uint64(r.Buffered()) }

// ChangeRing implements RingReceiver.
func (r *recvRing) ChangeRing(mem []byte) bool {
	if r.ChangingRing() || len(mem) < len(r.mem) {
		return false
	}
	r.nextMem = mem
	return true
}

// SwitchRing implements RingReceiver.
func (r *recvRing) SwitchRing() bool {
	if r.nextMem == nil {
		return false
	}
	if r.len() > 0 {
		r.old = r.ring
	}
	r.ring = ring{mem: r.nextMem, base: r.head, head: r.head, tail: r.head}
	r.nextMem = nil
	return true
}

// HalfFull implements RingReceiver.
func (r *recvRing) HalfFull() bool { return 2*r.len() > len(r.mem) }

// ChangingRing implements RingReceiver.
func (r *recvRing) ChangingRing() bool { return r.nextMem != nil || r.old.mem != nil }

// A spill holds unread bytes moved out of a ring. Its memory grows as needed and is released when
// all bytes have been read.
type spill struct {
	mem []byte
	off int // offset of the next byte to read
}

func (s *spill) len() int { return len(s.mem) - s.off }

func (s *spill) readInto(p []byte) int {
	n := copy(p, s.mem[s.off:])
	s.off += n
	if s.off == len(s.mem) {
		*s = spill{}
	}
	return n
}

// grow appends n bytes and returns them. It discards the bytes already read.
func (s *spill) grow(n int) []byte {
	s.mem = s.mem[:copy(s.mem, s.mem[s.off:])]
	s.off = 0
	s.mem = append(s.mem, make([]byte, n)...)
	return s.mem[len(s.mem)-n:]
}
