package qp

import (
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// inboundMessage is the message that a responder is receiving.
type inboundMessage struct {
	active bool           // between FIRST and LAST
	op     wire.Operation // OpSend or OpWrite

	held     bool    // wqe has been taken and not completed
	wqe      RecvWQE // of a SEND, or for the immediate data of a WRITE
	capacity uint64  // bytes wqe can take
	got      uint32  // bytes received

	va         uint64 // WRITE: where the next byte goes
	rkey       uint32
	length     uint32 // WRITE: of the whole message
	left       uint32 // WRITE: bytes to come
	priorBytes uint32 // WRITE: bytes of the pieces before, see inPieces
}

// AmidMessage reports whether the peer is an adapter like ours, in the middle of a message, and
// waits for no end of another: the rest of it comes before any acknowledgement, as far as its
// window allows.
func (c *Core) AmidMessage() bool {
	return c.softrnicPeer && (c.msg.active || c.msg.priorBytes > 0) && !c.acks.CoversMessageEnd()
}

// acquireRecv makes sure that a receive is held.
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

// ReleaseSharedRecv gives up what the queue pair holds of objects that outlive it: call it
// before a queue pair is destroyed. The receive of a shared queue that an
// unfinished message has taken goes back there, for another.
func (c *Core) ReleaseSharedRecv() {
	if c.msg.held && c.shared != nil {
		c.shared.PushFront(&c.msg.wqe)
	}
	c.msg.held = false
}

// completeRecv completes the held receive for the message that p ends.
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

// completeRecvErr completes the receive in wqe with an error.
func (c *Core) completeRecvErr(status verbs.WCStatus, why *verbs.Failure) {
	c.msg.held = false
	c.host.Complete(verbs.WC{WRID: c.msg.wqe.ID, Status: status, Opcode: verbs.WCRecv, QPN: c.num, Why: why}, true)
}

// failReceive moves to ERR because of a request that cannot be received. The
// held receive completes with the status; without one, an event tells.
func (c *Core) failReceive(now Time, status verbs.WCStatus, why *verbs.Failure) {
	if c.msg.held {
		c.completeRecvErr(status, why)
	} else {
		ev := verbs.EventQPReqErr
		if status == verbs.WCRemAccessErr || status == verbs.WCLocProtErr {
			ev = verbs.EventQPAccessErr
		}
		c.host.Event(ev, why)
	}
	c.setState(now, sErr)
}

func recvFailure(m memFault) *verbs.Failure {
	return &verbs.Failure{
		Event: "the posted receive cannot be used: " + m.fault.String(),
		Key:   m.sge.LKey, Addr: m.sge.Addr, Length: m.sge.Length, Cause: localCause(m.fault),
	}
}
