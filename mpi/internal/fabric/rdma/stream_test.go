package rdma

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// A testHost is the host of a fabric without a network.
type testHost struct {
	core *protocol.Core
	idle bool
}

func (h testHost) Do(f func(*protocol.Core)) { f(h.core) }
func (h testHost) Core() *protocol.Core      { return h.core }
func (h testHost) Leading() bool             { return false }
func (h testHost) Idle() bool                { return h.idle }

func (testHost) PollWhenIdle(context.Context, time.Duration) {}

// A testQP accepts all requests and sends nothing.
type testQP struct {
	verbs.QP
	sent []verbs.SendWR
}

func (q *testQP) PostSend(wrs []verbs.SendWR) (int, error) {
	q.sent = append(q.sent, wrs...)
	return len(wrs), nil
}
func (q *testQP) PostRecv(wrs []verbs.RecvWR) (int, error)    { return len(wrs), nil }
func (q *testQP) Modify(verbs.QPAttr, verbs.QPAttrMask) error { return nil }

// A testMR is registered memory.
type testMR struct {
	verbs.MR
	mem []byte
}

func (m testMR) Bytes() []byte            { return m.mem }
func (m testMR) Len() int                 { return len(m.mem) }
func (m testMR) Addr() uint64             { return 0 }
func (m testMR) RKey() uint32             { return 7 }
func (m testMR) SGE(off, n int) verbs.SGE { return verbs.SGE{Addr: uint64(off), Length: uint32(n)} }

// A testPD registers memory.
type testPD struct{ verbs.PD }

func (testPD) RegMR(b []byte, _ verbs.AccessFlags) (verbs.MR, error) { return testMR{mem: b}, nil }

func (testPD) RegMRAt(b []byte, _ uint64, _ verbs.AccessFlags) (verbs.MR, error) {
	return testMR{mem: b}, nil
}

// newTestLink returns the fabric of rank 0, with a link to rank 1 whose handshake mirrors its
// own.
func newTestLink(t testing.TB, o Options) (*Fabric, *link) {
	o.setDefaults()
	core := protocol.New(0, 2)
	f := &Fabric{host: testHost{core, false}, timer: vtime.AfterFunc(time.Hour, func() {}), o: o, pd: testPD{}, links: make([]*link, 2), byQP: map[uint32]*link{}}
	f.shared = &fabric.SharedCQ{Poll: func() bool { return false }}
	core.Attach(f)
	s, err := f.newStream()
	require.NoError(t, err)
	h := s.handshake(o.Flow)
	require.NoError(t, s.connect(&h, f.packetSize()))
	l := &link{rank: 1, qp: &testQP{}, up: true, credits: uint16(o.Credits), stream: s}
	f.links[1] = l
	return f, l
}

// arrive delivers bytes of rank 1 as one message.
func arrive(f *Fabric, l *link, imm streamImm, b []byte) {
	s := l.stream
	copy(s.in.Bytes()[s.receiver.WriteOffset():], b)
	f.handleStreamReceive(l, &verbs.WC{Opcode: verbs.WCRecvRDMAWithImm, Imm: uint32(imm), ByteLen: uint32(len(b))})
}

// packet returns a packet of rank 1, padded.
func packet(h envelope.Header, payload []byte) []byte {
	b := make([]byte, paddedSize(envelope.Size+len(payload)))
	marshalPacket(b, &h, payload, false)
	return b
}

// eager returns the header of an eager message of n bytes.
func eager(seq uint32, n int) envelope.Header {
	return envelope.Header{Kind: envelope.Eager, Source: 1, Seq: seq, Length: uint64(n), Bytes: uint32(n)}
}

// TestMalformedStreams checks that a rank which violates the protocol of streams is disconnected,
// with an error that names the violation.
func TestMalformedStreams(t *testing.T) {
	long := make([]byte, 9000)
	for _, m := range []Flow{FlowRDMA, FlowNIC} {
		for want, send := range map[string]func(f *Fabric, l *link){
			"packet of 4294967335 bytes in a ring of": func(f *Fabric, l *link) {
				arrive(f, l, streamFlag, packet(envelope.Header{Kind: envelope.Eager, Source: 1, Bytes: 1<<32 - 1}, nil))
			},
			"unknown kind 77": func(f *Fabric, l *link) {
				arrive(f, l, streamFlag, packet(envelope.Header{Kind: 77, Source: 1}, nil))
			},
			"of rank 0": func(f *Fabric, l *link) {
				arrive(f, l, streamFlag, packet(envelope.Header{Kind: envelope.FIN}, nil))
			},
			"1 credits returned in excess": func(f *Fabric, l *link) {
				arrive(f, l, streamFlag, packet(envelope.Header{Kind: envelope.Credit, Source: 1, Credits: 1}, nil))
			},
			"SEND of 3 bytes to a stream": func(f *Fabric, l *link) {
				f.handleStreamReceive(l, &verbs.WC{Opcode: verbs.WCRecv, ByteLen: 3})
			},
			"unexpected notification 5": func(f *Fabric, l *link) {
				f.handleStreamReceive(l, &verbs.WC{Opcode: verbs.WCRecvRDMAWithImm, Imm: 5})
			},
			flow.ErrOverrun.Error(): func(f *Fabric, l *link) {
				for i := 0; i < 5; i++ { // all but the last part of a packet
					f.handleStreamReceive(l, &verbs.WC{Opcode: verbs.WCRecvRDMAWithImm, Imm: uint32(streamFlag), ByteLen: 1 << 30})
				}
			},
		} {
			f, l := newTestLink(t, Options{Flow: m, Credits: 8})
			send(f, l)
			require.True(t, l.failed, "%v: %s", m, want)
			require.ErrorContains(t, l.cause, want, "%v", m)
		}
	}
	f, l := newTestLink(t, Options{Flow: FlowRDMA, Credits: 8})
	h := eager(0, 5)
	require.True(t, f.Send(1, &h, long[:5]))
	arrive(f, l, streamFlag|1<<freedBits|48/8, nil)
	require.NoError(t, l.cause, "the rank has read the packet of 48 bytes")
	arrive(f, l, streamFlag|1, nil)
	require.ErrorContains(t, l.cause, "report of 0 messages and 8 bytes, more than were sent")
	f, l = newTestLink(t, Options{Flow: FlowRDMA, Credits: 8})
	arrive(f, l, streamFlag|1<<freedBits, nil)
	require.ErrorContains(t, l.cause, "report of 1 messages and 0 bytes, more than were sent")
	f, l = newTestLink(t, Options{Flow: FlowNIC, Credits: 8})
	arrive(f, l, streamFlag, long[:streamWindow(f.ringSize())+8])
	require.ErrorIs(t, l.cause, flow.ErrOverrun, "longer than a window")
}

// TestHandshakes checks that rings which cannot carry the longest packet are refused.
func TestHandshakes(t *testing.T) {
	for want, change := range map[string]func(*handshake){
		"ring of 0 bytes out of range":       func(h *handshake) { h.ring = remoteRing{} },
		"ring of 16384 bytes out of range":   func(h *handshake) { h.ring.size = 16384 },
		"ring of 4194312 bytes out of range": func(h *handshake) { h.ring.size = maxRing + 8 },
		"0 receives out of range":            func(h *handshake) { h.flow, h.ring.n = FlowRDMA, 0 },
		"1024 receives out of range":         func(h *handshake) { h.flow, h.ring.n = FlowRDMA, 1024 },
		"window of 0 bytes":                  func(h *handshake) { h.window = 0 },
		"window of 4092 bytes":               func(h *handshake) { h.window = 4092 },
		"window of 8200 bytes in a ring of":  func(h *handshake) { h.window = 8200 },
	} {
		f, l := newTestLink(t, Options{Flow: FlowNIC, Credits: 8})
		h := l.stream.handshake(FlowNIC)
		change(&h)
		err := l.stream.connect(&h, f.packetSize())
		require.ErrorIs(t, err, envelope.ErrMalformed)
		require.ErrorContains(t, err, want)
	}
	f, l := newTestLink(t, Options{Flow: FlowNIC})
	require.ErrorIs(t, f.applyHandshake(l, make([]byte, 36)), ErrFlow, "of a rank that knows no modes")
	h := l.stream.handshake(FlowNIC)
	require.LessOrEqual(t, len(h.appendTo(nil)), 36, "room behind the ticket in a REQ")
	require.NoError(t, f.applyHandshake(l, append(h.appendTo(nil), 0, 0, 0)))
}

// TestRingSizes checks that both rings together take no more memory than the buffers of Credits
// packets, or of the four packets without which a stream might come to a halt.
func TestRingSizes(t *testing.T) {
	for _, eager := range []int{64, 1 << 10, 8 << 10, 1 << 20} {
		for _, credits := range []int{1, 2, 8, 64, 1 << 14} {
			f := &Fabric{o: Options{Eager: eager, Credits: credits}}
			n, w := f.ringSize(), 0
			require.LessOrEqual(t, n, max(credits*eager/2, 2*f.packetSize())+63)
			require.GreaterOrEqual(t, n, 2*f.packetSize())
			require.LessOrEqual(t, n, maxRing)
			require.Zero(t, n%64)
			w = streamWindow(n)
			require.Zero(t, w%8)
			r := flow.NewNICReceiver(make([]byte, n), w, 1<<14)
			require.NoError(t, r.Deliver(0, min(w, f.packetSize()-8)))
			for at := w; at < f.packetSize()-8; at += w { // the longest incomplete packet
				require.NoError(t, r.Deliver(at, min(w, f.packetSize()-8-at)))
			}
			require.Positive(t, r.Receives(), "eager %d, credits %d", eager, credits)
		}
	}
	require.Equal(t, 64*8<<10, 2*(&Fabric{o: Options{Eager: 8 << 10, Credits: 64}}).ringSize())
}

// TestStreamOfPackets passes packets of many lengths through a ring that they wrap around, cut
// into messages anywhere, and checks that they arrive.
func TestStreamOfPackets(t *testing.T) {
	for _, m := range []Flow{FlowRDMA, FlowNIC} {
		f, l := newTestLink(t, Options{Flow: m, Credits: 4})
		var stream []byte
		const packets = 400
		for i := range packets {
			payload := make([]byte, i*37%8000)
			for j := range payload {
				payload[j] = byte(i + j)
			}
			stream = append(stream, packet(eager(uint32(i), len(payload)), payload)...)
		}
		size := l.stream.in.Len()
		for i := 0; len(stream) > 0; i++ {
			n := min(len(stream), 8+i*8%4000, size-l.stream.receiver.WriteOffset(), streamWindow(size))
			arrive(f, l, streamFlag, stream[:n])
			stream = stream[n:]
			require.NoError(t, l.cause)
			f.serveStream(l)
		}
		require.Zero(t, l.stream.receiver.Buffered())
		for i := range packets {
			got := make([]byte, 8000)
			r := &protocol.Request{Envelope: match.Envelope{Source: 1}, Buf: got}
			f.host.Core().Receive(r)
			require.True(t, r.Done)
			require.Equal(t, i*37%8000, r.Bytes)
			for j := range got[:r.Bytes] {
				require.Equal(t, byte(i+j), got[j])
			}
		}
	}
}

// FuzzStream lets a rank write anything to its ring, in messages of any length.
func FuzzStream(f *testing.F) {
	f.Add(packet(eager(0, 9), make([]byte, 9)), uint16(8), uint32(1))
	f.Add(packet(envelope.Header{Kind: envelope.Hello, Source: 1}, nil), uint16(40), uint32(0))
	f.Add(append(packet(eager(0, 0), nil), packet(envelope.Header{Kind: envelope.FIN, Source: 1}, nil)...), uint16(100), uint32(3<<freedBits))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16, report uint32) {
		for _, m := range []Flow{FlowRDMA, FlowNIC} {
			fab, l := newTestLink(t, Options{Flow: m, Credits: 2, Eager: 64})
			for rest := b; len(rest) > 0 && !l.failed; {
				n := min(len(rest), int(cut)+1)
				imm := streamFlag | streamImm(report)
				s := l.stream
				copy(s.in.Bytes()[min(s.receiver.WriteOffset(), s.in.Len()):], rest[:n])
				fab.handleStreamReceive(l, &verbs.WC{Opcode: verbs.WCRecvRDMAWithImm, Imm: uint32(imm), ByteLen: uint32(n)})
				fab.serveStream(l)
				rest = rest[n:]
			}
			require.True(t, l.failed || l.stream.receiver.Buffered() <= l.stream.in.Len()/2+8)
		}
	})
}

// TestShortPacketsLeaveTogether checks that the packets behind the first one leave in one message:
// in the next call, by the timer, or when they are long enough.
func TestShortPacketsLeaveTogether(t *testing.T) {
	for _, m := range []Flow{FlowRDMA, FlowNIC} {
		f, l := newTestLink(t, Options{Flow: m})
		qp, seq := l.qp.(*testQP), uint32(0)
		send := func(packets, size int) (messages int) {
			before := len(qp.sent)
			for range packets {
				h := eager(seq, size)
				require.True(t, f.Send(1, &h, make([]byte, size)))
				seq++
			}
			return len(qp.sent) - before
		}
		require.Equal(t, 1, send(10, 100))
		f.Flush()
		require.Len(t, qp.sent, 2)
		require.EqualValues(t, 9*144, qp.sent[1].SGList[0].Length)
		require.Equal(t, 1, send(10, 100))
		f.onTimer()
		require.Len(t, qp.sent, 4)
		require.Equal(t, 1, send(1, 100))
		require.Equal(t, 1, send(80, 100), "not more than 8 KiB wait")
		require.Equal(t, 1, send(1, 2000), "nor a long packet")
		require.Zero(t, l.stream.sender.Unposted())
	}
}

// TestHeldBytes checks when bytes leave that the flow control has held back: with FlowRDMA in a
// call of the program only (section 4.2 of the paper), with FlowNIC also by a completion outside
// of calls.
func TestHeldBytes(t *testing.T) {
	for _, m := range []Flow{FlowRDMA, FlowNIC} {
		f, l := newTestLink(t, Options{Flow: m, Credits: 8})
		s, qp := l.stream, l.qp.(*testQP)
		packets := uint32(0)
		for ; s.sender.Unposted() == 0; packets++ {
			h := eager(packets, 1000)
			require.True(t, f.Send(1, &h, make([]byte, 1000)))
			if m == FlowRDMA { // the adapter is faster than the rank
				s.sender.CompleteUpTo(flow.MaxPos)
			}
		}
		sent := len(qp.sent)
		require.Len(t, f.heldLinks, 1)
		require.True(t, f.probing)
		f.probeRanks()
		require.Equal(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, WRID: l.nextWRID(wrProbe, 0) - 1}, qp.sent[sent])
		f.probeRanks()
		require.Len(t, qp.sent, sent+1, "one at a time")
		sent++
		f.host = testHost{f.host.Core(), true}
		if m == FlowNIC {
			s.sender.CompleteUpTo(flow.MaxPos)
			f.serveStream(l)
			require.Len(t, qp.sent, sent+1)
			continue
		}
		require.Equal(t, packets, uint32(sent-1), "each packet is a message while the ring has room")
		arrive(f, l, streamFlag|10<<freedBits|10*1040/8, nil)
		f.serveStream(l)
		f.Flush()
		f.flush(false)
		require.Len(t, qp.sent, sent)
		f.host = testHost{f.host.Core(), false}
		f.Flush()
		require.Greater(t, len(qp.sent), sent)
		require.Zero(t, s.sender.Unposted())
		f.Flush()
		require.Empty(t, f.heldLinks)
	}
}
