package protocol

import "github.com/softrnic/softrnic/mpi/internal/envelope"

// A sendOp is an operation in the send queue of a rank.
type sendOp struct {
	op     opKind
	kind   envelope.Kind // of a reply
	r      *Request
	id     uint64 // of a reply: number of the peer's request
	active *activePacket
}

// An activePacket is an Active packet in a send queue.
type activePacket struct {
	h       envelope.Header
	payload []byte
}

type opKind uint8

const (
	opMessage opKind = iota // EAGER or RTS of a send
	opWrite                 // RDMA WRITE of a send
	opStream                // DATA of a send
	opRead                  // RDMA READ of a receive
	opCTS                   // CTS of a receive
	opReply                 // a packet without payload about a request of the peer
	opThrottle
	opActive
	opPut // RMA operations
	opPutNotify
	opGet
	opAtomic
)

// enqueue tries an operation, and queues it if the net is full or operations precede
// it.
func (c *Core) enqueue(to int, o sendOp) {
	p := c.peers.Get(to)
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

// tryOp tries an operation, and reports whether the net accepted it.
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

// Resume drains the send queue of a rank. The net calls it when it has room again.
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
	rank, p := l.rank, c.peers.Get(l.rank)
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
		if o.r != nil && o.r.offset != before { // round-robin: a long message goes to the end
			p.queue.Push(p.queue.Pop())
		}
		return
	}
	if p.failOnceEmpty != nil {
		c.FailPeer(rank, p.failOnceEmpty)
	}
}

// sendPacket sends a packet, and reports whether the net accepted it. The net may have
// found just now that the rank failed: then its requests fail separately.
func (c *Core) sendPacket(to int, h *envelope.Header, payload []byte) bool {
	return c.peerState(to).err == nil && c.net.Send(to, h, payload)
}

// sendThrottle tells a rank whether to send RTS for all messages.
func (c *Core) sendThrottle(to int) bool {
	p := c.peers.Get(to)
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

// handleThrottle applies a THROTTLE of a rank, unless it is older than the last one.
func (c *Core) handleThrottle(from int, h *envelope.Header) {
	p := c.peers.Get(from)
	if int32(h.Seq-p.throttleReceived) > 0 { // serial number arithmetic: newer than the last
		p.throttleReceived, p.announceAll = h.Seq, h.Length == 1
	}
}
