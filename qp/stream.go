package qp

import (
	"fmt"

	"github.com/softrnic/softrnic/iwarp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// stream is the reliable connection over TCP (iWARP). TCP retransmits, so that there are no
// acknowledgements: a SEND or WRITE is complete when all of it is in the TCP stream, a READ or
// atomic when its response is complete. A SEND that finds no receive ends the connection.
//
// The adapter passes bytes. After PostSend, StreamReceived, Advance or Modify it calls Drain and
// sends StreamOutput, again until there is no output:
//
//	Drain            streamsend.go: requests and responses become FPDUs in the streamOutput
//	StreamOutput     the bytes, which refer to the application's memory
//	CompleteWritten  completes requests whose last byte is in the stream, as StreamWritten has recorded
//	StreamBuffers    streamreceive.go: memory for the next bytes, in registered memory if it can be
//	StreamReceived   handles FPDUs, whose segments and messages are in streammessage.go
//	StreamEnded      TCP is at its end, or has failed
type stream struct{ *Core }

// A streamState is the state of a queue pair whose transport is a stream.
type streamState struct {
	params     iwarp.Params
	maxPayload int              // of a segment in bytes, a multiple of 8
	attached   bool             // there is a connection
	ending     bool             // the connection ends: nothing but the output is sent, nothing is received
	owesRTR    bool             // the ready-to-receive indication must be sent first
	maySend    bool             // this end is the initiator, or an FPDU has arrived
	sendAt     reliability.Time // a responder may send then, if it need not wait for an indication; 0: not
	seed       uint32           // of the keys of READ sinks

	// A SEND between two ends with the extensions waits for a receive. Nothing is read meanwhile.
	stalled bool
	retryAt reliability.Time // with a shared receive queue: time to look there again

	hasWritten bool // requests are in the TCP stream and not complete

	connectBy reliability.Time // requests fail unless there is a connection by then; 0 without requests

	sentMSN [iwarp.Queues]uint32 // number of the last message sent in each queue
	nextMSN [iwarp.Queues]uint32 // number of the next message expected in each queue, minus 1

	out       *streamOutput // nil if empty
	outputs   *StreamPool
	in        streamInput
	responses []streamResponse // to READs and atomics, oldest first
}

// A StreamConfig describes the connection of a stream.
type StreamConfig struct {
	Params     iwarp.Params
	MaxSegment int         // bytes of a DDP segment, see iwarp.MaxSegment
	Seed       uint32      // random
	Pool       *StreamPool // of the caller's lock
}

// AttachStream begins the use of a connection. The state is StateRTR, StateRTS or StateSQD.
func (c *Core) AttachStream(now reliability.Time, cfg StreamConfig) error {
	if c.stream == nil || c.stream.attached || !acceptsPackets(c.state) {
		return &verbs.OpError{Op: "attach connection", Object: c.String(), Err: verbs.ErrState, Detail: "state " + c.state.String()}
	}
	s := c.stream
	*s = streamState{
		params: cfg.Params, attached: true, maySend: cfg.Params.Initiator, owesRTR: cfg.Params.Initiator && cfg.Params.RTR,
		seed: cfg.Seed, outputs: cfg.Pool, maxPayload: (cfg.MaxSegment - iwarp.UntaggedLen) &^ 7, responses: s.responses[:0],
	}
	if !s.maySend && !cfg.Params.RTR {
		s.sendAt = now + firstSendDelay
	}
	return nil
}

// firstSendDelay is the time in nanoseconds after which a responder sends although its initiator has sent
// nothing and has not agreed to an indication. RFC 5044 (section 7.1.2) has it wait forever, so that a
// program whose server sends first hangs. Linux's siw sends at once; a peer that reads the reply needs a
// moment, because siw rejects bytes that arrive together with it.
const firstSendDelay = 100 * reliability.Millisecond

// IsStream reports whether the transport is TCP.
func (c *Core) IsStream() bool { return c.stream != nil }

// StreamAttached reports whether there is a connection, and StreamEnding whether it is to be closed
// when StreamOutput is empty.
func (c *Core) StreamAttached() bool { return c.stream != nil && c.stream.attached }

// StreamEnding reports whether the connection is to be closed once StreamOutput is sent.
func (c *Core) StreamEnding() bool { return c.stream != nil && c.stream.ending }

// DetachStream ends the use of the connection.
func (c *Core) DetachStream() {
	s := c.stream
	s.dropOutput()
	s.in.releaseBuffer(s.outputs)
	s.attached, s.ending, s.stalled = false, false, false
}

// StreamEnded handles the end of the connection: the peer has closed it, or it has failed with the
// given cause.
func (c *Core) StreamEnded(now reliability.Time, cause error) {
	s := c.stream
	if !s.attached || s.ending {
		return
	}
	f := &verbs.Failure{Event: "the peer closed the TCP connection", Err: cause,
		Cause: "the peer disconnected, its queue pair has failed or was closed, or its process has ended"}
	if cause != nil {
		f.Event = "the TCP connection failed: " + cause.Error()
	} else if !s.in.isPartial() {
		c.CompleteWritten(now) // the peer has taken them without an objection
	} else if s.in.isPartial() {
		f.Event += " in the middle of an FPDU"
	}
	c.failStream(now, verbs.WCRetryExcErr, f, cause != nil || s.in.isPartial())
}

// failStream ends the connection because of the peer: the oldest request fails. Without one an event
// reports the failure, if report is set.
func (c *Core) failStream(now reliability.Time, status verbs.WCStatus, f *verbs.Failure, report bool) {
	c.stream.ending = true
	if c.sq.head != c.sq.tail {
		c.failSend(now, c.sq.wqeAt(c.sq.head), status, f)
		return
	}
	if report {
		c.host.Event(verbs.EventQPFatal, f)
	}
	c.setState(now, sErr)
}

// extensionNames are the requests for which RFC 5040 has no message.
var extensionNames = map[verbs.WROpcode]string{
	verbs.WRSendWithImm: "a message with immediate data", verbs.WRRDMAWriteWithImm: "a write with immediate data",
	verbs.WRAtomicCmpSwap: "an atomic", verbs.WRAtomicFetchAdd: "an atomic",
}

// postRequest implements transport.
func (t stream) postRequest(wr *verbs.SendWR) error {
	if wr.Opcode == verbs.WRFlush || wr.Opcode == verbs.WRAtomicWrite {
		return &verbs.OpError{Op: "post send", Object: t.String(), Err: verbs.ErrUnsupported, Detail: wr.Opcode.String() + ": iWARP does not have it"}
	}
	if name := extensionNames[wr.Opcode]; name != "" && t.stream.attached && !t.stream.params.Extended {
		return &verbs.OpError{Op: "post send", Object: t.String(), Err: verbs.ErrUnsupported,
			Detail: fmt.Sprintf("%v: the peer is no softrnic, and RFC 5040 has no message for %s", wr.Opcode, name)}
	}
	return t.postConnected(wr)
}

// mayStart implements transport.
func (t stream) mayStart(*sendWQE) bool { return t.stream.maySend }

func (t stream) inFlight() int                       { return 0 }
func (t stream) hasOutstanding() bool                { return false }
func (t stream) drainAck(reliability.Time, Out) bool { return false }
func (t stream) hasPendingAck() bool                 { return false }
func (t stream) expireDelayedAck()                   {}

func (t stream) onSendRefused(reliability.Time, wire.BTH, *wire.Info, *verbs.RefusedError) {}

// handlePacket implements transport: datagrams are of no connection.
func (t stream) handlePacket(reliability.Time, *wire.Packet) wire.Drop {
	return wire.DropWrongTransport
}

// minConnectTime is the minimum time in nanoseconds that requests wait for a connection.
const minConnectTime = 5000 * reliability.Millisecond

// deadline implements transport.
func (t stream) deadline() reliability.Time {
	s := t.stream
	switch {
	case s.stalled && t.shared != nil:
		return s.retryAt
	case s.attached && !s.maySend && t.state == sRTS:
		return s.sendAt
	case t.state != sRTS || s.attached:
		return 0
	}
	return s.connectBy
}

// advance implements transport: requests fail that have waited for a connection for too long.
func (t stream) advance(now reliability.Time) {
	d := t.deadline()
	if d == 0 || now < d {
		return
	}
	if t.stream.stalled {
		t.ResumeStream(now)
		return
	}
	if t.stream.attached {
		t.stream.maySend = true
		return
	}
	if t.sq.head == t.sq.tail {
		return
	}
	t.counters.RetryExceededErr++
	t.failSend(now, t.sq.wqeAt(t.sq.head), verbs.WCRetryExcErr, &verbs.Failure{
		Event: fmt.Sprintf("no connection to %v", t.path.Dst), Cause: fmt.Sprintf(
			"its queue pair 0x%x does not connect to this one; a firewall may block TCP port %d, or the address or the number is wrong",
			t.attr.DestQPN, t.path.Dst.Port()),
	})
}

// configure implements transport. Requests are numbered like packets, one number each.
func (t stream) configure() { t.mtu = MaxMessage }

// afterFailure implements transport.
func (t stream) afterFailure(now reliability.Time) { t.setState(now, sErr) }

// flush implements transport: the connection ends. Output that refers to memory of requests is not
// sent, but a Terminate is.
func (t stream) flush() {
	s := t.stream
	if s.attached {
		s.ending = true
	}
	if s.out != nil && !s.out.terminate {
		s.dropOutput()
	}
	s.responses = s.responses[:0]
}

// reset implements transport.
func (t stream) reset() {
	s := t.stream
	s.dropOutput()
	s.in.releaseBuffer(s.outputs)
	*s = streamState{responses: s.responses[:0]}
}

// recordSegment records a segment in the flight recorder.
func (c *Core) recordSegment(now reliability.Time, out bool, op iwarp.Opcode, msn uint32) {
	k := recordSegmentIn
	if out {
		k = recordSegmentOut
		c.counters.SentPkts++
	} else {
		c.counters.RcvdPkts++
	}
	c.recorder.addRecord(record{at: now, psn: wire.PSN(msn), op: wire.Opcode(op), kind: k})
}

// sharedRetry is the interval in nanoseconds at which a stalled stream looks for a receive in a shared
// queue, which does not know its waiters.
const sharedRetry = 100 * reliability.Microsecond

// stallStream reports whether a segment begins a message that finds no receive and waits for one: both
// ends have the extensions. Otherwise it would end the connection.
func (c *Core) stallStream(now reliability.Time, h *iwarp.Header) bool {
	s := c.stream
	if !s.params.Extended || h.Opcode.IsTagged() || h.Queue != iwarp.QueueSend || c.msg.active || h.MSN != s.nextMSN[h.Queue]+1 || c.acquireRecv() {
		return false
	}
	s.stalled, s.retryAt = true, now+sharedRetry
	return true
}

// StreamStalled reports whether a message waits for a receive. Nothing is read meanwhile.
func (c *Core) StreamStalled() bool { return c.stream != nil && c.stream.stalled }

// ResumeStream continues after a receive was posted, and returns the number of FPDUs handled.
func (c *Core) ResumeStream(now reliability.Time) (fpdus int) {
	c.stream.stalled = false
	return c.StreamReceived(now, nil, 0)
}

// FailConnecting handles the failure of the set-up of the connection.
func (c *Core) FailConnecting(now reliability.Time, cause error) {
	if c.stream.attached {
		return
	}
	c.failStream(now, verbs.WCRetryExcErr, &verbs.Failure{
		Event: "the connection was not set up: " + cause.Error(), Cause: "the peer refused it, or is no iWARP adapter", Err: cause,
	}, true)
}
