package mpi

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/match"
	"github.com/softrnic/softrnic/mpi/protocol"
)

// Collective calls are compared by their signs (collective_sign.go) wherever ranks learn
// of one another's anyway:
//
//   - a message has the sign of its call. One that comes is compared with the call of its
//     number here, whether that waits for it, expects nothing of its sender, is over, or
//     has not begun, which is compared then;
//   - in memory in common each rank sees the signs of all others (collective_wait.go);
//   - who waits for another rank asks it for a sign of life (lookout_lost.go), and tells
//     the sign of the call it waits in. A rank that is through with that call says so, and
//     what has not come from it by then never will.
//
// The rank that finds out tells all others of the communicator. Calls of that number end
// with the error at all ranks; where the call is over already the next one has it, or
// Finalize, before which all ranks flush (lookout_flush.go).

// recentCalls is the number of calls of a communicator that are compared with signs that come late, or
// early.
const recentCalls = 64

// A disagreement is a pair of calls of two ranks that do not match.
type disagreement struct {
	Number       uint32 // of the call
	Rank, Other  uint32 // in the communicator
	Sign, Theirs callSign
	// If the signs agree: so many bytes Rank has for Other, which expects as many as
	// Expects. -1 is none.
	Sends, Expects int64
}

// Error implements error.
func (d *disagreement) Error() string {
	text := ""
	switch {
	case d.Sign == 0 && d.Theirs != 0:
		text = fmt.Sprintf("rank %d takes no part in %v of rank %d", d.Rank, d.Theirs, d.Other)
	case !d.Sign.agrees(d.Theirs):
		text = difference(int(d.Rank), d.Sign, int(d.Other), d.Theirs)
	case d.Sends < 0:
		text = fmt.Sprintf("rank %d has ended %s and sent nothing to rank %d, which waits for it", d.Rank, d.Sign.name(), d.Other)
	case d.Expects < 0:
		text = fmt.Sprintf("rank %d sends %d bytes in %s to rank %d, which expects none", d.Rank, d.Sends, d.Sign.name(), d.Other)
	default:
		text = fmt.Sprintf("rank %d sends %d bytes in %s to rank %d, which expects %d", d.Rank, d.Sends, d.Sign.name(), d.Other, d.Expects)
	}
	return fmt.Sprintf("%v: in call #%d %s", ErrMismatch, d.Number, text)
}

// Unwrap has a piece that is too long be ErrTruncated, too.
func (d *disagreement) Unwrap() []error {
	if d.Sign.agrees(d.Theirs) && d.Expects >= 0 && d.Sends > d.Expects {
		return []error{ErrMismatch, ErrTruncated}
	}
	return []error{ErrMismatch}
}

// A knownCall is the knowledge of a rank about one call of a communicator.
type knownCall struct {
	number uint32
	begun  bool // here: sign is ours, and else that of the first rank that has sent something
	rank   uint32
	sign   callSign
	call   *call // that is under way here
	early  int   // messages that have come for it and had no receive
	bad    *disagreement
}

// A callLog holds the known calls of a communicator. The communicator's lock guards it.
type callLog struct {
	recent [recentCalls]knownCall // by number
	older  map[uint32]*knownCall  // under way for longer: in the background, or persistent
	late   *disagreement          // of a call that is over, for the next one
}

// find returns the entry of a call, nil if there is none. last is the number of the last
// call that has begun here; of later ones notes are begun.
func (l *callLog) find(number, last uint32) *knownCall {
	x := &l.recent[number%recentCalls]
	switch ahead := (number - last) & maxSeq; {
	case x.number == number && (x.begun || x.sign != 0 || x.bad != nil):
		return x
	case ahead > 0 && ahead < recentCalls && x.call == nil:
		*x = knownCall{number: number}
		return x
	}
	return l.older[number]
}

// begin notes a call that begins here, and returns what is wrong with it if that is known.
func (l *callLog) begin(k *call, rank int) (bad *disagreement, news bool) {
	number := uint32(k.net.tag) & maxSeq
	x := &l.recent[number%recentCalls]
	if x.call != nil && x.number != number {
		if l.older == nil {
			l.older = map[uint32]*knownCall{}
		}
		kept := *x
		l.older[x.number] = &kept
	}
	early := *x
	*x = knownCall{number: number, begun: true, rank: uint32(rank), sign: k.sign, call: k}
	if early.number != number || early.begun {
		return nil, false
	}
	x.early = early.early
	if x.bad = early.bad; x.bad == nil && !k.sign.agrees(early.sign) {
		x.bad = &disagreement{Number: number, Rank: early.rank, Other: uint32(rank), Sign: early.sign, Theirs: k.sign}
		news = true
	}
	return x.bad, news
}

// end notes that a call is over here, and reports whether messages of it are left that it
// has not received. What comes of one that has failed is not looked at.
func (l *callLog) end(k *call, err error) (left bool) {
	number := uint32(k.net.tag) & maxSeq
	x := &l.recent[number%recentCalls]
	if x.call != k {
		delete(l.older, number)
		return false
	}
	if x.call = nil; err == nil {
		l.late = cmp.Or(l.late, x.bad)
	} else if x.bad == nil {
		x.bad = &disagreement{Number: number}
	}
	return x.bad == nil && x.early > k.net.met
}

// findLeft finds a message of a call that is over and has not received it.
func (c *Comm) findLeft(number uint32, sign callSign) {
	c.eng.Do(func(core *protocol.Core) {
		var d *disagreement
		core.EachMessage(func(m *protocol.Message, _ bool) bool {
			if e := m.Envelope; e.Context == c.id+1 && uint32(e.Tag)&maxSeq == number && e.Tag&groupTag != groupTag {
				d = &disagreement{Number: number, Rank: uint32(c.local(int(e.Source))), Other: uint32(c.rank), Sign: sign, Theirs: sign, Sends: int64(m.Length), Expects: -1}
			}
			return d == nil
		})
		if d != nil {
			c.disagree(core, d)
		}
	})
}

// note notes that a call is wrong, and reports whether that is new.
func (l *callLog) note(d *disagreement, last uint32) bool {
	x := l.find(d.Number, last)
	switch {
	case x == nil:
		l.late = d
		return true
	case x.bad != nil:
		return false
	}
	x.bad = d
	if x.call != nil {
		x.call.bad.Store(d)
	}
	if x.begun && (x.call == nil || x.call.op.form == kept) { // a persistent call may not be under way
		l.late = d
	}
	return true
}

// lateDisagreement is the error of a call that was over when it was found to be wrong,
// once.
func (c *Comm) lateDisagreement() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.log.late; d != nil {
		c.log.late = nil
		return d
	}
	return nil
}

// told notes that the program has been told.
func (l *callLog) told(d *disagreement) {
	if l.late == d {
		l.late = nil
	}
}

// disagree notes that a call is wrong, and tells the other ranks if they need not know.
// The caller has the engine's lock.
func (c *Comm) disagree(core *protocol.Core, d *disagreement) {
	c.mu.Lock()
	news := c.log.note(d, c.seq&maxSeq)
	c.mu.Unlock()
	if news {
		c.tellDisagreement(core, d)
	}
}

// tellDisagreement tells all other ranks. The caller has the engine's lock.
func (c *Comm) tellDisagreement(core *protocol.Core, d *disagreement) {
	for r := range c.size {
		if r != c.rank {
			c.tellDisagreementTo(core, c.job(r), d)
		}
	}
}

// tellDisagreementTo tells a rank of the job.
func (c *Comm) tellDisagreementTo(core *protocol.Core, rank int, d *disagreement) {
	payload, _ := binary.Append(nil, binary.LittleEndian, d) // which is of fixed size
	c.world.lookout.tellDisagreement(core, rank, c.id, payload)
}

// toldDisagreement handles what tellDisagreement has sent.
func (w *World) toldDisagreement(h *envelope.Header, payload []byte) error {
	d := new(disagreement)
	if _, err := binary.Decode(payload, binary.LittleEndian, d); err != nil {
		return err
	}
	c := w.comms.get(uint32(h.ID))
	if c == nil {
		w.comms.keepEarly(uint32(h.ID), d)
		return nil
	}
	if d.Number <= maxSeq && int64(d.Rank) < int64(c.size) && int64(d.Other) < int64(c.size) {
		c.mu.Lock()
		c.log.note(d, c.seq&maxSeq)
		c.mu.Unlock()
	}
	return nil
}

// strange is protocol.Core.Strange: a message of a collective call is compared with what
// is known of its call.
func (w *World) strange(from int, e match.Envelope, sign uint64, r *protocol.Request) {
	if e.Context&1 == 0 || e.Tag&groupTag == groupTag {
		return
	}
	if c := w.comms.get(e.Context &^ 1); c != nil {
		c.compare(w.eng.Core(), from, uint32(e.Tag)&maxSeq, callSign(sign), r == nil)
	}
}

// compare compares the call of a rank of the job with what is known of that call. If it
// sends something and the call is over here that is too much, whatever it is.
func (c *Comm) compare(core *protocol.Core, from int, number uint32, sign callSign, unmet bool) {
	rank := c.local(from)
	if rank < 0 || rank >= c.size || c.world.o.Check {
		return
	}
	sign = sign.withoutPieces()
	c.mu.Lock()
	x := c.log.find(number, c.seq&maxSeq)
	var d *disagreement
	if x != nil && unmet && (x.call != nil || !x.begun) {
		x.early++
	}
	switch {
	case x == nil || x.bad != nil:
	case !x.begun && x.sign == 0:
		x.rank, x.sign = uint32(rank), sign
	case !x.sign.agrees(sign):
		d = &disagreement{Number: number, Rank: uint32(rank), Other: x.rank, Sign: sign, Theirs: x.sign}
	case unmet && x.begun && x.call == nil:
		d = &disagreement{Number: number, Rank: uint32(rank), Other: x.rank, Sign: sign, Theirs: x.sign, Expects: -1}
	}
	news := d != nil && c.log.note(d, c.seq&maxSeq)
	c.mu.Unlock()
	if news {
		c.tellDisagreement(core, d)
	}
}

// compareEarly compares the messages that have come before the communicator was made here.
func (c *Comm) compareEarly(core *protocol.Core) {
	var early []*protocol.Message
	core.EachMessage(func(m *protocol.Message, _ bool) bool {
		if m.Envelope.Context == c.id+1 && m.Envelope.Tag&groupTag != groupTag && m.Signature() != 0 {
			early = append(early, m)
		}
		return true
	})
	for _, m := range early {
		c.compare(core, int(m.Envelope.Source), uint32(m.Envelope.Tag)&maxSeq, callSign(m.Signature()), true)
	}
}

// A callProbe is the message of a rank that waits in a call to the ranks that it waits for.
type callProbe struct {
	Number uint32
	Sign   callSign
}

// probe is that of the call.
func (k *call) probe() []byte {
	payload, _ := binary.Append(nil, binary.LittleEndian, callProbe{uint32(k.net.tag) & maxSeq, k.sign})
	return payload
}

// probed is called when a rank waits for us in a collective call of a communicator.
func (w *World) probed(core *protocol.Core, from int, h *envelope.Header, payload []byte) error {
	var p callProbe
	if _, err := binary.Decode(payload, binary.LittleEndian, &p); err != nil {
		return err
	}
	c := w.comms.get(uint32(h.ID))
	if c == nil || p.Sign == 0 || p.Number > maxSeq {
		return nil
	}
	c.compare(core, from, p.Number, p.Sign, false)
	c.mu.Lock()
	x := c.log.find(p.Number, c.seq&maxSeq)
	var bad *disagreement
	ended := false
	if x != nil {
		bad, ended = x.bad, x.begun && x.call == nil
	}
	c.mu.Unlock()
	switch {
	case bad != nil && bad.Theirs != 0: // it may have been told before it had the communicator
		c.tellDisagreementTo(core, from, bad)
	case bad == nil && ended:
		w.lookout.tell(core, from, envelope.Header{Tag: packetEnded, ID: h.ID}, payload)
	}
	return nil
}

// ended is called when a rank that we wait for is through with the call that we wait in.
// All that it has sent there is here.
func (w *World) ended(from int, h *envelope.Header, payload []byte) error {
	var p callProbe
	if _, err := binary.Decode(payload, binary.LittleEndian, &p); err != nil {
		return err
	}
	c := w.comms.get(uint32(h.ID))
	if c == nil || p.Number > maxSeq {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.log.find(p.Number, c.seq&maxSeq); x != nil && x.call != nil {
		list := []int{from}
		if before := x.call.net.ended.Load(); before != nil {
			list = append(list, *before...)
		}
		x.call.net.ended.Store(&list)
	}
	return nil
}
