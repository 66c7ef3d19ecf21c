package protocol

import "github.com/softrnic/softrnic/mpi/internal/envelope"

// sendOp is something that is to leave for a rank, or waits for room on the
// way to it.
type sendOp struct {
	op     opKind
	kind   envelope.Kind // of an answer
	r      *Request
	id     uint64 // of an answer: the request at the other end
	active *activePacket
}

// activePacket is an Active packet that waits.
type activePacket struct {
	h       envelope.Header
	payload []byte
}

type opKind uint8

const (
	opMessage opKind = iota // a send begins
	opWrite                 // a send's memory is written
	opStream                // a send's memory leaves in packets
	opRead                  // a receive's memory is read
	opCTS                   // a receive asks for its message
	opReply                 // a packet without payload about a request of the other rank
	opThrottle
	opActive
	opPut // one-sided
	opPutNotify
	opGet
	opAtomic
)

// enqueue lets something leave, or makes it wait its turn.
func (c *Core) enqueue(to int, o sendOp) {
	p := &c.peers[to]
	if p.err != nil {
		if o.r != nil {
			c.complete(o.r, p.err)
		}
		return
	}
	if o.r != nil {
		o.r.state = stateQueued
	}
	if p.queue.Len() > 0 || !c.tryOp(to, o) {
		c.Stats.Stalled++
		p.queue.Push(o)
	}
}

// tryOp carries out one outgoing thing, and reports whether that is done.
func (c *Core) tryOp(to int, o sendOp) bool {
	switch o.op {
	case opMessage:
		return c.sendMessage(to, o.r)
	case opWrite:
		return c.writeMessage(to, o.r)
	case opStream:
		return c.sendData(to, o.r)
	case opRead:
		return c.readMessage(to, o.r)
	case opCTS:
		return c.sendCTS(to, o.r)
	case opReply:
		return c.sendPacket(to, c.newHeader(o.kind, o.id), nil)
	case opThrottle:
		return c.sendThrottle(to)
	case opActive:
		return c.trySendActive(to, &o.active.h, o.active.payload)
	}
	return c.startTransfer(to, o)
}

// Resume goes on with what waits for room on the way to a rank.
func (c *Core) Resume(rank int) {
	l := deferredCall{f: (*Core).drainQueue, rank: rank}
	if c.deferIfBusy(l) {
		return
	}
	c.enter()
	defer c.exit()
	c.drainQueue(l)
}

func (c *Core) drainQueue(l deferredCall) {
	rank, p := l.rank, &c.peers[l.rank]
	for p.err == nil && p.queue.Len() > 0 {
		o := *p.queue.Front()
		before := uint64(0)
		if o.r != nil {
			before = o.r.offset
		}
		if c.tryOp(rank, o) {
			if p.queue.Pop().op == opActive {
				p.queuedActives--
			}
			continue
		}
		if o.r != nil && o.r.offset != before { // a long message lets others pass
			p.queue.Push(p.queue.Pop())
		}
		return
	}
}

// sendPacket sends a packet, and reports whether there was room. The net may have found
// out just now that the rank is lost: then what is under way fails by itself.
func (c *Core) sendPacket(to int, h *envelope.Header, payload []byte) bool {
	return c.peers[to].err == nil && c.net.Send(to, h, payload)
}

// sendThrottle tells a rank whether to announce its messages.
func (c *Core) sendThrottle(to int) bool {
	p := &c.peers[to]
	h := c.newHeader(envelope.Throttle, 0)
	h.Seq = p.throttleSent + 1
	if p.throttled {
		h.Length = 1
	}
	if !c.sendPacket(to, h, nil) {
		return false
	}
	p.throttleSent++
	return true
}

// handleThrottle is told by a rank whether to announce our messages to it.
func (c *Core) handleThrottle(from int, h *envelope.Header) {
	p := &c.peers[from]
	if int32(h.Seq-p.throttleReceived) > 0 { // and no older than the last
		p.throttleReceived, p.announceAll = h.Seq, h.Length == 1
	}
}
