package qp

import (
	"fmt"

	"github.com/softrnic/softrnic/iwarp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// sendTerminate ends the connection because of the peer: it sends a Terminate, if the output is at the
// end of an FPDU, and enters ERR. The receive in use completes with status, or an event reports the
// failure. segment is the length of the segment whose header head is, and request that of a READ.
func (c *Core) sendTerminate(now reliability.Time, code iwarp.Code, head []byte, segment int, request []byte, status verbs.WCStatus, f *verbs.Failure) {
	s := c.stream
	if s.ending {
		return
	}
	c.putTerminate(now, code, head, segment, request)
	c.failReceive(now, status, f)
}

// putTerminate replaces the output by a Terminate, if it is at the end of an FPDU. The connection ends.
func (c *Core) putTerminate(now reliability.Time, code iwarp.Code, head []byte, segment int, request []byte) {
	s := c.stream
	s.ending = true
	if s.out == nil || s.out.written == 0 {
		s.dropOutput()
		m := iwarp.Terminate{Code: code, Length: uint16(segment), Segment: head, Request: request}
		b := m.AppendTo(make([]byte, 0, iwarp.MaxTerminateLen))
		h := stream{c}.newUntagged(iwarp.OpTerminate)
		s.putControl(&h, len(b), func(to []byte) { copy(to, b) })
		s.out.terminate = true
		c.recordSegment(now, true, h.Opcode, h.MSN)
	}
}

// failSink ends the connection because the memory of w, a READ or atomic, cannot be accessed.
func (c *Core) failSink(now reliability.Time, w *sendWQE, m memFault) {
	c.putTerminate(now, iwarp.RDMAPCatastrophic, nil, 0, nil)
	if c.CompleteWritten(now); c.sq.head != c.sq.tail && c.sq.wqeAt(c.sq.head) == w {
		c.failLocal(now, w, m)
		return
	}
	c.failReceive(now, verbs.WCLocProtErr, recvFailure(m))
}

// rejectSegment ends the connection because of an invalid segment.
func (c *Core) rejectSegment(now reliability.Time, code iwarp.Code, head []byte, segment int, reason string) {
	c.sendTerminate(now, code, head, segment, nil, verbs.WCRemInvReqErr, &verbs.Failure{
		Event: "rejected the peer's segment: " + reason, Opcode: iwarp.Opcode(head[1] & 15).String(), Cause: "correct the peer, or the attributes of the queue pair here",
	})
}

// rejectAccess ends the connection because the peer may not access memory.
func (c *Core) rejectAccess(now reliability.Time, code iwarp.Code, head []byte, payload int, request []byte, key uint32, addr uint64, n uint32, f Fault) {
	status, cause := verbs.WCRemAccessErr, "correct the peer's key or range, or the access of the region or the queue pair here"
	if f == FaultMemory {
		status, cause = verbs.WCLocProtErr, memoryCause
	}
	c.sendTerminate(now, code, head, len(head)+payload, request, status, &verbs.Failure{
		Event: "rejected the peer's request: " + f.String(), Opcode: iwarp.Opcode(head[1] & 15).String(), Key: key, Addr: addr, Length: n, Cause: cause,
	})
}

// failTooLong ends the connection because a message does not fit in its receive.
func (c *Core) failTooLong(now reliability.Time, h *iwarp.Header, head []byte, segment int) {
	c.sendTerminate(now, iwarp.MessageTooLong, head, segment, nil, verbs.WCLocLenErr, &verbs.Failure{
		Event:  fmt.Sprintf("the message is longer than the %d bytes of the posted receive", c.msg.capacity),
		Opcode: h.Opcode.String(), Cause: "post larger receives, or send less",
	})
}

// failPlacement ends the connection because memory for the payload of a segment cannot be accessed.
func (c *Core) failPlacement(now reliability.Time, h *iwarp.Header, head []byte, m memFault) {
	switch h.Opcode {
	case iwarp.OpWrite:
		c.rejectAccess(now, taggedCode(m.fault), head, 0, nil, m.sge.LKey, m.sge.Addr, m.sge.Length, m.fault)
	case iwarp.OpReadResponse:
		_, w := c.oldestResponse(verbs.WRRDMARead)
		c.failSink(now, w, m)
	default:
		c.sendTerminate(now, iwarp.RDMAPCatastrophic, nil, 0, nil, verbs.WCLocProtErr, recvFailure(m))
	}
}

// failCRC ends the connection because of a wrong CRC.
func (c *Core) failCRC(now reliability.Time) {
	c.sendTerminate(now, iwarp.CRCMismatch, nil, 0, nil, verbs.WCRemInvReqErr, &verbs.Failure{
		Event: "an FPDU has a wrong CRC", Cause: "the path or the peer's adapter corrupts data, or the peer's application changed memory while it was being sent",
	})
}

// sourceCode returns the code for memory that a READ or atomic may not access.
func sourceCode(f Fault) iwarp.Code {
	switch f {
	case FaultDomain, FaultQP:
		return iwarp.STagNotAssociated
	case FaultBounds, FaultMisalign:
		return iwarp.BaseBounds
	case FaultAccess:
		return iwarp.AccessRights
	case FaultMemory:
		return iwarp.RDMAPCatastrophic
	}
	return iwarp.InvalidSTag
}

// taggedCode returns the code for memory that a WRITE may not access.
func taggedCode(f Fault) iwarp.Code {
	switch f {
	case FaultDomain, FaultQP:
		return iwarp.TaggedNotAssoc
	case FaultBounds:
		return iwarp.TaggedBaseBounds
	case FaultAccess:
		return iwarp.AccessRights
	case FaultMemory:
		return iwarp.DDPCatastrophic
	}
	return iwarp.TaggedInvalidSTag
}

// receiveTerminate handles the end of the connection by the peer, which has rejected a segment.
func (c *Core) receiveTerminate(now reliability.Time, payload []byte) {
	t, ok := iwarp.ParseTerminate(payload)
	f := &verbs.Failure{Event: "the peer ended the connection by an incomplete TERMINATE"}
	status := verbs.WCRemOpErr
	if ok {
		f.Event, f.Cause = "the peer ended the connection: TERMINATE "+t.Code.String(), "correct the request or the peer; the peer's completions and events have details"
		status = terminateStatus(t.Code)
		if len(t.Segment) > 1 {
			f.Event += ", because of " + iwarp.Opcode(t.Segment[1]&15).String()
		}
	}
	if c.sq.head != c.sq.tail {
		w := c.sq.wqeAt(c.sq.head)
		f.Key, f.Addr, f.Length = w.rkey, w.remote, w.length
	}
	c.failStream(now, status, f, true)
}

// terminateStatus returns the status of a request that the peer ended with a Terminate.
func terminateStatus(code iwarp.Code) verbs.WCStatus {
	switch code {
	case iwarp.InvalidSTag, iwarp.BaseBounds, iwarp.AccessRights, iwarp.STagNotAssociated, iwarp.OffsetWrap, iwarp.CannotInvalidate,
		iwarp.TaggedInvalidSTag, iwarp.TaggedBaseBounds, iwarp.TaggedNotAssoc, iwarp.TaggedOffsetWrap:
		return verbs.WCRemAccessErr
	case iwarp.RDMAPCatastrophic, iwarp.DDPCatastrophic, iwarp.StreamError:
		return verbs.WCRemOpErr
	}
	return verbs.WCRemInvReqErr
}
