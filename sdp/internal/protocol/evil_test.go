package protocol

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// evil is a peer that sends arbitrary messages to a core.
type evil struct {
	t    require.TestingT
	core *Core
	cfg  Config
	mem  map[uint32]Memory
	rq   []verbs.RecvWR
	sent []verbs.SendWR // by the core, not completed
	seq  uint32
	bufs uint16
}

// newEvil returns the peer of a core with 8 buffers of 100 bytes, windows of 50 and 16 receives.
func newEvil(t require.TestingT, d flow.Control) *evil {
	e := &evil{t: t, mem: make(map[uint32]Memory), bufs: 20}
	e.cfg = Config{FlowControl: d, Buffers: 8, BufferBytes: 100, Window: 50, Queue: 16, Receives: 16, MaxAdverts: 1, MaxBufferBytes: 200}
	e.cfg.Send = e.register(e.cfg.SendBytes())
	e.cfg.Slots = e.register(e.cfg.SlotBytes())
	e.cfg.Ring = e.register(e.cfg.RingBytes())
	e.core = New(e.cfg)
	e.handlePosts()
	return e
}

func (e *evil) start() *evil {
	e.core.Start(Peer{FlowControl: e.cfg.FlowControl, Bufs: e.bufs, BufferBytes: 116, MaxAdverts: 1, Ring: 850, Buffer: 800, Window: 50, Addr: 1, RKey: 1, ShortHeaders: e.cfg.FlowControl == flow.Credit})
	e.handlePosts()
	return e
}

func (e *evil) register(n int) Memory {
	key := uint32(len(e.mem) + 1)
	m := Memory{Bytes: make([]byte, n), Addr: uint64(key) << 32, LKey: key, RKey: key}
	e.mem[key] = m
	return m
}

// handlePosts handles the posts of the core.
func (e *evil) handlePosts() {
	for _, wr := range e.core.Receives() {
		s := wr.SGList[0]
		wr.SGList = []verbs.SGE{s}
		require.LessOrEqual(e.t, s.Addr-e.mem[s.LKey].Addr+uint64(s.Length), uint64(len(e.mem[s.LKey].Bytes)))
		e.rq = append(e.rq, wr)
	}
	for _, wr := range e.core.Sends() {
		wr.SGList = nil
		e.sent = append(e.sent, wr)
	}
	e.core.ClearPosted()
	require.LessOrEqual(e.t, len(e.rq), e.cfg.ReceiveQueue())
	require.LessOrEqual(e.t, len(e.sent), e.cfg.SendQueue())
}

// finish completes the posts of the core.
func (e *evil) finish() *evil {
	for len(e.sent) > 0 {
		wr := e.sent[0]
		e.sent = e.sent[1:]
		if wr.Flags&verbs.SendSignaled != 0 {
			e.core.HandleCompletion(&verbs.WC{WRID: wr.WRID, Opcode: verbs.WCSend})
			e.handlePosts()
		}
	}
	return e
}

// deliverRaw delivers bytes.
func (e *evil) deliverRaw(b []byte) *evil { return e.deliver(b, verbs.WC{}) }

// deliverImm delivers data whose header is immediate data.
func (e *evil) deliverImm(imm uint32, b []byte) *evil {
	e.seq++
	return e.deliver(b, verbs.WC{Flags: verbs.WCWithImm, Imm: imm})
}

func (e *evil) deliver(b []byte, wc verbs.WC) *evil {
	require.NotEmpty(e.t, e.rq, "no receive")
	wr := e.rq[0]
	e.rq = e.rq[1:]
	s := wr.SGList[0]
	m := e.mem[s.LKey]
	n := copy(m.Bytes[s.Addr-m.Addr:][:s.Length], b)
	wc.WRID, wc.Opcode, wc.ByteLen = wr.WRID, verbs.WCRecv, uint32(n)
	e.core.HandleCompletion(&wc)
	e.handlePosts()
	return e
}

// frame returns a valid message.
func (e *evil) frame(id bsdh.MID, ext, payload []byte) []byte {
	e.seq++
	h := bsdh.Header{MID: id, Bufs: e.bufs, Len: uint32(bsdh.HeaderBytes + len(ext) + len(payload)), Seq: e.seq, Ack: e.lastNumber()}
	return append(append(h.Append(nil), ext...), payload...)
}

// lastNumber returns the number of the last message of the core.
func (e *evil) lastNumber() uint32 {
	c := e.core.credits // a copy, whose next number is one higher
	return c.NextSeq() - 1
}

func (e *evil) deliverMessage(id bsdh.MID, ext []byte, payload ...byte) *evil {
	return e.deliverRaw(e.frame(id, ext, payload))
}

// write delivers an RDMA WRITE with immediate data.
func (e *evil) write(at, n int) *evil {
	e.seq++
	require.NotEmpty(e.t, e.rq, "no receive")
	wr := e.rq[0]
	e.rq = e.rq[1:]
	e.core.HandleCompletion(&verbs.WC{WRID: wr.WRID, Opcode: verbs.WCRecvRDMAWithImm, ByteLen: uint32(n), Imm: uint32(bsdh.MakeImm(uint32(at), false))})
	e.handlePosts()
	return e
}

// The extended headers.
func srcAvail(n int) []byte {
	return bsdh.SrcAvail{Len: uint32(n), RKey: 9, Addr: 9}.Append(nil)
}

func sinkAvail(n, nonDiscards int) []byte {
	return bsdh.SinkAvail{Len: uint32(n), RKey: 9, Addr: 9, NonDiscards: uint32(nonDiscards)}.Append(nil)
}

func compl(n int) []byte     { return bsdh.RdmaCompl{Len: uint32(n)}.Append(nil) }
func size(n int) []byte      { return bsdh.ChRcvBuf{Size: uint32(n)}.Append(nil) }
func freed(n int) []byte     { return bsdh.RingUpdate{Freed: uint64(n)}.Append(nil) }
func ringOf(n uint32) []byte { return bsdh.RingChange{Ring: n, RKey: 9, Addr: 9}.Append(nil) }

func modeOf(m bsdh.Mode, send bool) []byte {
	return bsdh.ModeChange{Mode: m, SendHalf: send}.Append(nil)
}
