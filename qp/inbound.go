package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// An inboundMessage is the message that a responder is receiving.
type inboundMessage struct {
	active bool           // between FIRST and LAST
	op     wire.Operation // OpSend or OpWrite

	held     bool    // wqe is in use
	got      uint32  // bytes received
	wqe      RecvWQE // receive of a SEND, or of the immediate data of a WRITE
	capacity uint64  // length of wqe in bytes

	va         uint64 // WRITE: address of the next byte
	rkey       uint32
	length     uint32 // WRITE: total length of the message
	left       uint32 // WRITE: remaining bytes
	priorBytes uint32 // WRITE: bytes of earlier packets of a split write, see splitsWrite
}

// MidMessage reports whether a softrnic peer is in the middle of a message and
// does not wait for the acknowledgement of an earlier one. The rest of the
// message then arrives without an acknowledgement, as far as the window allows.
func (c *Core) MidMessage() bool {
	return c.softrnicPeer && (c.msg.active || c.msg.priorBytes > 0) && !c.acks.CoversMessageEnd()
}

// acquireRecv ensures that a receive is in use. It reports false if none is
// posted.
func (c *Core) acquireRecv() bool {
	m := &c.msg
	if m.held {
		return true
	}
	from := c.shared
	if from == nil {
		from = &c.rq
	}
	if !from.Pop(&m.wqe) {
		return false
	}
	m.held, m.got, m.capacity = true, 0, listLength(m.wqe.SGList)
	return true
}

// ReleaseSharedRecv returns the receive of an incomplete message to the shared
// queue. It must be called before the queue pair is closed.
func (c *Core) ReleaseSharedRecv() {
	if c.msg.held && c.shared != nil {
		c.shared.PushFront(&c.msg.wqe)
	}
	c.msg.held = false
}

// completeRecv completes the receive in use for the message that p ends.
func (c *Core) completeRecv(p *wire.Packet, wc verbs.WC) {
	m := &c.msg
	wc.WRID, wc.QPN, wc.ByteLen = m.wqe.ID, c.num, m.got
	wc.Opcode = verbs.WCRecv
	if p.Info.Operation == wire.OpWrite {
		wc.Opcode, wc.ByteLen = verbs.WCRecvRDMAWithImm, m.priorBytes+m.length
	}
	if p.Info.Imm {
		wc.Flags |= verbs.WCWithImm
		wc.Imm = p.Imm()
	}
	m.held, m.got = false, 0
	c.counters.RDMARecvs++
	c.host.Complete(wc, p.BTH.SE)
}

// completeRecvErr completes the receive in use with an error.
func (c *Core) completeRecvErr(status verbs.WCStatus, failure *verbs.Failure) {
	c.msg.held = false
	c.host.Complete(verbs.WC{WRID: c.msg.wqe.ID, Status: status, Opcode: verbs.WCRecv, QPN: c.num, Failure: failure}, true)
}

// failReceive enters ERR because of a request that cannot be received. The
// receive in use completes with status. Without one, an event reports the
// failure.
func (c *Core) failReceive(now reliability.Time, status verbs.WCStatus, failure *verbs.Failure) {
	if c.msg.held {
		c.completeRecvErr(status, failure)
	} else {
		ev := verbs.EventQPReqErr
		if status == verbs.WCRemAccessErr || status == verbs.WCLocProtErr {
			ev = verbs.EventQPAccessErr
		}
		c.host.Event(ev, failure)
	}
	c.setState(now, sErr)
}

func recvFailure(m memFault) *verbs.Failure {
	return &verbs.Failure{
		Event: "the posted receive cannot be accessed: " + m.fault.String(),
		Key:   m.sge.LKey, Addr: m.sge.Addr, Length: m.sge.Length, Cause: localCause(m.fault),
	}
}
