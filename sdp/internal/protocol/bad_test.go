package protocol

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

const (
	nic, rdma, credit = flow.NIC, flow.RDMA, flow.Credit
	data              = bsdh.MIDData
)

var one = make([]byte, 1)

func offerOf(e *evil, n int) *evil {
	e.core.Offer(make([]byte, n), 1, 1)
	e.handlePosts()
	return e
}

func sinkOf(e *evil, n int) *evil {
	e.core.OfferSink(1, 1, n)
	e.handlePosts()
	return e
}

// deliverChanged delivers a message with a changed number in its header.
func deliverChanged(e *evil, id bsdh.MID, off int, with uint32) {
	b := e.frame(id, make([]byte, id.Extended()), nil)
	binary.BigEndian.PutUint32(b[off:], with)
	e.deliverRaw(b)
}

// violations lists violations of the protocol with their errors.
var violations = []struct {
	name  string
	in    flow.Control
	do    func(e *evil)
	cause string
}{
	{"nothing", nic, func(e *evil) { e.deliverRaw(nil) }, "0 bytes arrived"},
	{"half a header", nic, func(e *evil) { e.deliverRaw(make([]byte, 15)) }, "15 bytes arrived"},
	{"longer than it is", credit, func(e *evil) { deliverChanged(e, data, 4, 17) }, "of length 17: 16 bytes received"},
	{"much longer", credit, func(e *evil) { deliverChanged(e, data, 4, 1<<32-1) }, "of length 4294967295"},
	{"shorter than its header", credit, func(e *evil) { deliverChanged(e, bsdh.MIDSrcAvail, 4, 31) }, "headers alone take 32 bytes"},
	{"shorter than it is", rdma, func(e *evil) {
		deliverChanged(e, bsdh.MIDRingUpdate, 4, 24)
		e.deliverRaw(append(e.frame(data, nil, nil), 0))
	}, "Data: length field 16, message has 17 bytes"},
	{"number too high", nic, func(e *evil) { deliverChanged(e, data, 8, 2) }, "sequence number 2, want 1"},
	{"number again", nic, func(e *evil) { e.deliverMessage(data, nil); deliverChanged(e, data, 8, 1) }, "sequence number 1, want 2"},
	{"writes count", nic, func(e *evil) { e.write(0, 5); deliverChanged(e, data, 8, 1) }, "sequence number 1, want 2"},
	{"ack of the unsent", nic, func(e *evil) { deliverChanged(e, data, 12, 1) }, "acknowledgement of unsent message 1"},
	{"more than receives were announced", credit, func(e *evil) {
		e.bufs = 0
		for range 11 {
			e.deliverMessage(data, nil)
		}
	}, "message 11 exceeds the advertised receives, 10"},
	{"id 15", nic, func(e *evil) { e.deliverMessage(0x0F, nil) }, "MID 0xf"},
	{"id 252", credit, func(e *evil) { e.deliverMessage(0xFC, nil) }, "MID 0xfc"},
	{"Hello", credit, func(e *evil) { e.deliverMessage(bsdh.MIDHello, make([]byte, 76)) }, "Hello"},
	{"SuspCommAck", credit, func(e *evil) { e.deliverMessage(bsdh.MIDSuspCommAck, nil) }, "SuspCommAck"},
	{"data where there may be none", credit, func(e *evil) { e.deliverMessage(bsdh.MIDSendSm, nil, 1) }, "SendSm with 1 bytes of data"},

	{"ring elsewhere", nic, func(e *evil) { e.write(1, 5) }, "at offset 1: "},
	{"ring before", nic, func(e *evil) { e.write(0, 5).write(0, 5) }, "at offset 0: "},
	{"ring outside", nic, func(e *evil) { e.write(1<<31-1, 5) }, "at offset 2147483647: "},
	{"longer than a window", nic, func(e *evil) { e.write(0, 51) }, flow.ErrOverrun.Error()},
	{"longer than the ring", rdma, func(e *evil) { e.write(0, 801) }, flow.ErrOverrun.Error()},
	{"more than the ring", rdma, func(e *evil) { e.write(0, 800).write(0, 1) }, flow.ErrOverrun.Error()},
	{"a very long write", rdma, func(e *evil) { e.write(0, 1<<31-1) }, flow.ErrOverrun.Error()},
	{"a write without a ring", credit, func(e *evil) { e.write(0, 5) }, "without a ring"},
	{"Data with a ring", nic, func(e *evil) { e.deliverMessage(data, nil, 1) }, "Data message of 1 bytes with flow control nic"},
	{"RingUpdate without a ring", credit, func(e *evil) { e.deliverMessage(bsdh.MIDRingUpdate, freed(0)) }, "RingUpdate with flow control credit"},
	{"RingUpdate without a ring", nic, func(e *evil) { e.deliverMessage(bsdh.MIDRingUpdate, freed(0)) }, "RingUpdate with flow control nic"},
	{"RingUpdate of the unsent", rdma, func(e *evil) { e.deliverMessage(bsdh.MIDRingUpdate, freed(1)) }, "RingUpdate of 1 bytes, more than were sent"},
	{"RingChange without a ring", credit, func(e *evil) { e.deliverMessage(bsdh.MIDRingChange, ringOf(1000)) }, "RingChange with flow control credit"},
	{"RingChange to less", rdma, func(e *evil) { e.deliverMessage(bsdh.MIDRingChange, ringOf(849)) }, "RingChange from 850 to 849"},
	{"RingChange to too much", nic, func(e *evil) { e.deliverMessage(bsdh.MIDRingChange, ringOf(1<<31)) }, "RingChange from 850 to 2147483648"},
	{"RingChange twice", nic, func(e *evil) {
		e.core.controls.depth = 0 // no reply can be sent
		e.deliverMessage(bsdh.MIDRingChange, ringOf(900)).deliverMessage(bsdh.MIDRingChange, ringOf(1000))
	}, "second RingChange"},
	{"RingSwitched", nic, func(e *evil) { e.deliverMessage(bsdh.MIDRingSwitched, nil) }, "without a RingChange"},
	{"RingSwitched twice", rdma, func(e *evil) {
		require.True(e.t, e.core.ChangeRing(e.register(900)))
		e.handlePosts()
		e.deliverMessage(bsdh.MIDRingSwitched, nil).deliverMessage(bsdh.MIDRingSwitched, nil)
	}, "without a RingChange"},

	{"a write after DisConn", nic, func(e *evil) { e.deliverMessage(bsdh.MIDDisConn, nil).write(0, 1) }, "ring write after DisConn"},
	{"data after DisConn", credit, func(e *evil) { e.deliverMessage(bsdh.MIDDisConn, nil).deliverMessage(data, nil, 1) }, "Data message after DisConn"},
	{"SrcAvail after DisConn", nic, func(e *evil) { e.deliverMessage(bsdh.MIDDisConn, nil).deliverMessage(bsdh.MIDSrcAvail, srcAvail(9)) }, "SrcAvail after DisConn"},
	{"DisConn twice", rdma, func(e *evil) { e.deliverMessage(bsdh.MIDDisConn, nil).deliverMessage(bsdh.MIDDisConn, nil) }, "second DisConn"},
	{"DisConn with a SrcAvail", nic, func(e *evil) { e.deliverMessage(bsdh.MIDSrcAvail, srcAvail(9)).deliverMessage(bsdh.MIDDisConn, nil) }, "while a SrcAvail is outstanding"},

	{"SrcAvail without data", credit, func(e *evil) { e.deliverMessage(bsdh.MIDSrcAvail, srcAvail(9)) }, "SrcAvail of 9 bytes with 0 bytes inline in combined mode"},
	{"SrcAvail that is all data", credit, func(e *evil) { e.deliverMessage(bsdh.MIDSrcAvail, srcAvail(3), 1, 2, 3) }, "SrcAvail of 3 bytes with 3 bytes inline in combined mode"},
	{"SrcAvail with data", nic, func(e *evil) { e.deliverMessage(bsdh.MIDSrcAvail, srcAvail(9), 1) }, "SrcAvail of 9 bytes with 1 bytes inline in pipelined mode"},
	{"SrcAvail of nothing", rdma, func(e *evil) { e.deliverMessage(bsdh.MIDSrcAvail, srcAvail(0)) }, "SrcAvail of 0 bytes"},
	{"two SrcAvail", nic, func(e *evil) {
		e.deliverMessage(bsdh.MIDSrcAvail, srcAvail(9)).deliverMessage(bsdh.MIDSrcAvail, srcAvail(9))
	}, "second SrcAvail, limit 1"},
	{"SrcAvail in buffered mode", credit, func(e *evil) {
		e.deliverMessage(bsdh.MIDModeChange, modeOf(bsdh.Buffered, false)).deliverMessage(bsdh.MIDSrcAvail, srcAvail(9), 1)
	}, "SrcAvail in buffered mode"},
	{"a write behind a SrcAvail", nic, func(e *evil) { e.deliverMessage(bsdh.MIDSrcAvail, srcAvail(9)).write(0, 1) }, "ring write while a SrcAvail is outstanding"},
	{"data behind a SrcAvail", credit, func(e *evil) { e.deliverMessage(bsdh.MIDSrcAvail, srcAvail(9), 1).deliverMessage(data, nil, 1) }, "Data message while a SrcAvail is outstanding"},
	{"SinkAvail in combined mode", credit, func(e *evil) { e.deliverMessage(bsdh.MIDSinkAvail, sinkAvail(9, 0)) }, "SinkAvail in combined mode"},
	{"SinkAvail with data", nic, func(e *evil) { e.deliverMessage(bsdh.MIDSinkAvail, sinkAvail(9, 0), 1) }, "SinkAvail with 1 bytes of data"},
	{"SinkAvail of nothing", nic, func(e *evil) { e.deliverMessage(bsdh.MIDSinkAvail, sinkAvail(0, 0)) }, "SinkAvail of 0 bytes"},
	{"SinkAvail after the unsent", nic, func(e *evil) { e.deliverMessage(bsdh.MIDSinkAvail, sinkAvail(9, 1)) }, "SinkAvail after 1 data messages, 0 were sent"},
	{"two SinkAvail", nic, func(e *evil) {
		e.deliverMessage(bsdh.MIDSinkAvail, sinkAvail(9, 0)).deliverMessage(bsdh.MIDSinkAvail, sinkAvail(9, 0))
	}, "second SinkAvail, limit 1"},
	{"SinkAvail after the change was received", credit, func(e *evil) {
		require.True(e.t, e.core.ChangeMode(bsdh.ModeChange{Mode: bsdh.Pipelined}))
		require.True(e.t, e.core.ChangeMode(bsdh.ModeChange{Mode: bsdh.Combined}))
		e.handlePosts()
		e.deliverMessage(bsdh.MIDSinkAvail, sinkAvail(9, 0))
	}, "SinkAvail in combined mode"},

	{"RdmaRdCompl of nothing", nic, func(e *evil) { e.deliverMessage(bsdh.MIDRdmaRdCompl, compl(1)) }, "RdmaRdCompl of 1 bytes exceeds the offer"},
	{"RdmaRdCompl of too much", nic, func(e *evil) { offerOf(e, 9).deliverMessage(bsdh.MIDRdmaRdCompl, compl(10)) }, "RdmaRdCompl of 10 bytes exceeds the offer"},
	{"RdmaRdCompl of its own data", credit, func(e *evil) { offerOf(e, 9).deliverMessage(bsdh.MIDRdmaRdCompl, compl(9)) }, "RdmaRdCompl of 9 bytes exceeds the offer"},
	{"RdmaRdCompl of too much in all", nic, func(e *evil) {
		offerOf(e, 9).deliverMessage(bsdh.MIDRdmaRdCompl, compl(8)).deliverMessage(bsdh.MIDRdmaRdCompl, compl(2))
	}, "RdmaRdCompl of 2 bytes exceeds the offer"},
	{"RdmaRdCompl before it can know", nic, func(e *evil) {
		e.core.controls.depth = 0
		offerOf(e, 9).deliverMessage(bsdh.MIDRdmaRdCompl, compl(9))
	}, "RdmaRdCompl of 9 bytes exceeds the offer"},
	{"SendSm", nic, func(e *evil) { e.deliverMessage(bsdh.MIDSendSm, nil) }, "SendSm without a SrcAvail"},
	{"SendSm twice", nic, func(e *evil) { offerOf(e, 9).deliverMessage(bsdh.MIDSendSm, nil).deliverMessage(bsdh.MIDSendSm, nil) }, "SendSm without a SrcAvail"},
	{"RdmaWrCompl", nic, func(e *evil) { e.deliverMessage(bsdh.MIDRdmaWrCompl, compl(1)) }, "without a matching SinkAvail"},
	{"RdmaWrCompl of too much", nic, func(e *evil) { sinkOf(e, 9).deliverMessage(bsdh.MIDRdmaWrCompl, compl(10)) }, "without a matching SinkAvail"},
	{"RdmaWrCompl after data", nic, func(e *evil) { sinkOf(e, 9).write(0, 1).deliverMessage(bsdh.MIDRdmaWrCompl, compl(9)) }, "without a matching SinkAvail"},
	{"RdmaWrCompl before it can know", nic, func(e *evil) {
		e.core.controls.depth = 0
		sinkOf(e, 9).deliverMessage(bsdh.MIDRdmaWrCompl, compl(1))
	}, "without a matching SinkAvail"},
	{"SinkCancelAck", nic, func(e *evil) { e.deliverMessage(bsdh.MIDSinkCancelAck, nil) }, "without a SinkAvailCancel"},
	{"SinkCancelAck before the question", nic, func(e *evil) { sinkOf(e, 9).deliverMessage(bsdh.MIDSinkCancelAck, nil) }, "without a SinkAvailCancel"},

	{"ModeChange with a ring", nic, func(e *evil) { e.deliverMessage(bsdh.MIDModeChange, modeOf(bsdh.Combined, false)) }, "ModeChange to combined, receive half with flow control nic"},
	{"ModeChange to the same", credit, func(e *evil) { e.deliverMessage(bsdh.MIDModeChange, modeOf(bsdh.Combined, false)) }, "ModeChange to combined, receive half from combined"},
	{"ModeChange by the sink", credit, func(e *evil) { e.deliverMessage(bsdh.MIDModeChange, modeOf(bsdh.Pipelined, true)) }, "ModeChange to pipelined, send half from combined"},
	{"ModeChange over two steps", credit, func(e *evil) {
		e.deliverMessage(bsdh.MIDModeChange, modeOf(bsdh.Buffered, false)).deliverMessage(bsdh.MIDModeChange, modeOf(bsdh.Pipelined, false))
	}, "ModeChange to pipelined, receive half from buffered"},
	{"ModeChange to mode 3", credit, func(e *evil) { e.deliverMessage(bsdh.MIDModeChange, []byte{0x30, 0, 0, 0}) }, "ModeChange to mode 3"},
	{"ModeChange with a SrcAvail", credit, func(e *evil) {
		e.deliverMessage(bsdh.MIDSrcAvail, srcAvail(9), 1).deliverMessage(bsdh.MIDModeChange, modeOf(bsdh.Buffered, false))
	}, "while a SrcAvail is outstanding"},

	{"ChRcvBuf with a ring", nic, func(e *evil) { e.deliverMessage(bsdh.MIDChRcvBuf, size(9)) }, "ChRcvBuf with flow control nic"},
	{"ChRcvBuf twice", credit, func(e *evil) {
		e.deliverMessage(bsdh.MIDChRcvBuf, size(150)).deliverMessage(bsdh.MIDChRcvBuf, size(160))
	}, "second ChRcvBuf before the ChRcvBufAck"},
	{"ChRcvBufAck", credit, func(e *evil) { e.deliverMessage(bsdh.MIDChRcvBufAck, size(200)) }, "without a ChRcvBuf"},
	{"ChRcvBufAck of less", credit, func(e *evil) {
		require.True(e.t, e.core.RequestPeerSize(200))
		e.handlePosts()
		e.deliverMessage(bsdh.MIDChRcvBufAck, size(115))
	}, "ChRcvBufAck of 115 bytes, less than the current 116"},

	{"SrcAvail and its cancel for ever", nic, func(e *evil) {
		for e.core.Err() == nil { // no message of the core ever completes
			e.deliverMessage(bsdh.MIDSrcAvail, srcAvail(9)).deliverMessage(bsdh.MIDSrcAvailCancel, nil)
		}
	}, "32 control messages queued, no space for SendSm"},
	{"SinkAvail and its cancel for ever", nic, func(e *evil) {
		for e.core.Err() == nil {
			e.deliverMessage(bsdh.MIDSinkAvail, sinkAvail(9, 0)).deliverMessage(bsdh.MIDSinkAvailCancel, nil)
		}
	}, "no space for SinkCancelAck"},
	{"questions for ever", nic, func(e *evil) {
		for e.core.Err() == nil {
			b := e.frame(data, nil, nil)
			b[1] = byte(bsdh.RequestPipe)
			e.deliverRaw(b)
		}
	}, "no space for Data"},
	{"ChRcvBuf for ever", credit, func(e *evil) {
		e.bufs = 0
		for e.core.Err() == nil {
			e.deliverMessage(bsdh.MIDChRcvBuf, size(9))
		}
	}, "exceeds the advertised receives"},
	{"ChRcvBuf for ever, with credits", credit, func(e *evil) {
		e.bufs = 1<<16 - 1
		for e.core.Err() == nil {
			e.deliverMessage(bsdh.MIDChRcvBuf, size(9))
		}
	}, "exceeds the advertised receives"},
}

// TestViolations checks that each violation ends the connection with its error.
func TestViolations(t *testing.T) {
	for _, s := range violations {
		t.Run(s.name, func(t *testing.T) {
			e := newEvil(t, s.in).start()
			s.do(e)
			require.ErrorIs(t, e.core.Err(), ErrProtocol)
			require.ErrorContains(t, e.core.Err(), s.cause)
			why := e.core.Err()
			if len(e.rq) > 0 {
				e.deliverMessage(bsdh.MIDDisConn, nil)
			}
			require.Equal(t, why, e.core.Err(), "the first cause stays")
			require.Zero(t, e.core.Write(one))
			require.False(t, e.core.CanOffer() || e.core.CanOfferSink() || e.core.SendKeepAlive())
			require.LessOrEqual(t, len(e.core.controls.ordered)+len(e.core.controls.unordered), maxQueuedControls)
		})
	}
}

// TestMessageBeforeEstablished delivers a message before the connection is established.
func TestMessageBeforeEstablished(t *testing.T) {
	for _, early := range []func(e *evil){
		func(e *evil) { e.deliverMessage(bsdh.MIDSendSm, nil) },
		func(e *evil) { e.write(0, 1) },
	} {
		e := newEvil(t, nic)
		early(e)
		require.ErrorIs(t, e.core.Err(), ErrProtocol)
		require.ErrorContains(t, e.core.Err(), "before the connection is established")
	}
}

// TestNoViolations delivers unusual messages that are permitted.
func TestNoViolations(t *testing.T) {
	for name, do := range map[string]func(e *evil){
		"cancel of nothing": func(e *evil) {
			e.deliverMessage(bsdh.MIDSrcAvailCancel, nil).deliverMessage(bsdh.MIDSinkAvailCancel, nil)
		},
		"an older word": func(e *evil) {
			e.core.SendKeepAlive()
			e.deliverMessage(data, nil)
			e.bufs = 3
			e.deliverMessage(data, nil)
		},
		"SinkAvail before the data": func(e *evil) {
			e.core.Write(one)
			e.handlePosts()
			e.deliverMessage(bsdh.MIDSinkAvail, sinkAvail(9, 0))
		},
		"a short completion": func(e *evil) { sinkOf(e, 9).deliverMessage(bsdh.MIDRdmaWrCompl, compl(0)) },
		"reads in parts": func(e *evil) {
			offerOf(e, 9).deliverMessage(bsdh.MIDRdmaRdCompl, compl(4)).deliverMessage(bsdh.MIDSendSm, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEvil(t, nic).start()
			do(e)
			require.NoError(t, e.core.Err())
			require.False(t, e.core.Offering() || e.core.SinkActive() || e.core.PeerSinkLen() > 0)
		})
	}
}

// TestEnds checks the ends of a connection that are not a violation.
func TestEnds(t *testing.T) {
	e := newEvil(t, nic).start().deliverMessage(bsdh.MIDAbortConn, nil)
	require.ErrorIs(t, e.core.Err(), ErrAborted)

	e = newEvil(t, credit).start().deliverMessage(bsdh.MIDSuspComm, make([]byte, 8))
	require.ErrorIs(t, e.core.Err(), ErrReset)
	require.NotErrorIs(t, e.core.Err(), ErrProtocol)

	e = newEvil(t, nic).start()
	e.core.HandleCompletion(&verbs.WC{Status: verbs.WCRetryExcErr})
	require.ErrorIs(t, e.core.Err(), ErrReset)
	var why *verbs.CompletionError
	require.ErrorAs(t, e.core.Err(), &why)
	require.Equal(t, verbs.WCRetryExcErr, why.Status)

	// Both halves have ended: the queue pair may be closed.
	e = newEvil(t, nic).start().deliverMessage(bsdh.MIDDisConn, nil)
	require.False(t, e.core.BothClosed())
	e.core.CloseWrite()
	e.handlePosts()
	require.False(t, e.core.Delivered())
	e.finish()
	require.True(t, e.core.BothClosed())
	e.core.HandleCompletion(&verbs.WC{Status: verbs.WCWRFlushErr})
	e.core.PeerDisconnected(ErrAborted)
	require.NoError(t, e.core.Err())

	// The end requests an acknowledgement after the last byte.
	e = newEvil(t, nic).start()
	require.Equal(t, 5, e.core.Write(make([]byte, 5)))
	e.core.CloseWithoutDisConn()
	require.False(t, e.core.Delivered())
	sends := e.core.Sends()
	require.Equal(t, verbs.WRRDMAWriteWithImm, sends[0].Opcode)
	require.Equal(t, verbs.WRRDMAWrite, sends[1].Opcode)
	e.handlePosts()
	e.finish()
	require.True(t, e.core.Delivered())
	require.False(t, e.core.BothClosed())
	require.NoError(t, e.core.Err())
	e = newEvil(t, nic).start()
	e.core.CloseWrite()
	e.core.CloseWithoutDisConn()
	e.handlePosts()
	require.False(t, e.core.Delivered())
	e.finish()
	require.True(t, e.core.Delivered(), "by the DisConn")

	// AbortConn is permitted after a DisConn only.
	e = newEvil(t, nic).start()
	require.False(t, e.core.Abort())
	require.True(t, e.deliverMessage(bsdh.MIDDisConn, nil).core.Abort())
	require.Equal(t, bsdh.MIDAbortConn, bsdh.MID(e.core.Sends()[0].InlineData[0]))
	require.True(t, e.core.Aborting())
	e.core.Fail(ErrReset) // it is sent
	e.handlePosts()
	e.finish()
	require.False(t, e.core.Aborting())
	e = newEvil(t, nic).start().deliverMessage(bsdh.MIDDisConn, nil)
	e.core.PeerDisconnected(ErrAborted)
	require.ErrorIs(t, e.core.Err(), ErrReset)
}

// TestDriver checks that an error of the driver does not panic.
func TestDriver(t *testing.T) {
	for name, do := range map[string]func(c *Core){
		"a receive that does not exist": func(c *Core) { c.HandleCompletion(&verbs.WC{Opcode: verbs.WCRecv, WRID: 1 << 40}) },
		"a receive that is not posted":  func(c *Core) { c.HandleCompletion(&verbs.WC{Opcode: verbs.WCRecv, WRID: 1000}) },
		"a read":                        func(c *Core) { c.HandleCompletion(&verbs.WC{WRID: kindRead.wrid(5)}) },
		"a write":                       func(c *Core) { c.HandleCompletion(&verbs.WC{WRID: kindWrite.wrid(5)}) },
		"a control":                     func(c *Core) { c.HandleCompletion(&verbs.WC{WRID: kindControl.wrid(5)}) },
		"a keepalive":                   func(c *Core) { c.HandleCompletion(&verbs.WC{WRID: kindAlive.wrid(0)}) },
		"nothing known":                 func(c *Core) { c.HandleCompletion(&verbs.WC{WRID: 1<<64 - 1}) },
		"a fetch of nothing":            func(c *Core) { c.ReadPeerSource(verbs.SGE{Length: 1}) },
		"a place of nothing":            func(c *Core) { c.WritePeerSink(verbs.SGE{Length: 1}) },
	} {
		e := newEvil(t, nic).start()
		do(e.core)
		require.Error(t, e.core.Err(), name)
		require.NotErrorIs(t, e.core.Err(), ErrProtocol)
		require.Empty(t, e.core.Sends())
	}
}
