package sdp_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// puppet is a peer without a stack, on an adapter of its own, that sends the messages of a test.
type puppet struct {
	t       *testing.T
	manager *cm.Manager
	udpPort uint16
	l       *cm.Listener
	pd      verbs.PD
	cq      verbs.CQ
	qp      verbs.QP
	mr      verbs.MR // puppetSlots receives, and memory to send from
	hello   bsdh.Hello
	seq     uint32 // of its last message
	heard   uint32 // received messages
	inbox   []verbs.WC
}

const (
	puppetSlots = 32
	puppetSlot  = 4096
)

// newPuppet returns a puppet that waits for a dial.
func newPuppet(t *testing.T) *puppet {
	t.Helper()
	dev := device(t, rnic.Options{})
	p := &puppet{t: t}
	var err error
	p.manager, err = cm.New(dev, cm.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.manager.Close()) })
	p.udpPort = p.manager.Addr().Port()
	p.l, err = p.manager.Listen(0, cm.ListenOptions{PortSpace: cm.SDP})
	require.NoError(t, err)
	p.pd, err = dev.AllocPD()
	require.NoError(t, err)
	p.mr, err = p.pd.RegMR(make([]byte, (puppetSlots+1)*puppetSlot), verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
	require.NoError(t, err)
	p.cq, err = dev.CreateCQ(256)
	require.NoError(t, err)
	p.qp, err = p.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: p.cq, RecvCQ: p.cq, SelectiveSignaling: true,
		Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: puppetSlots, MaxSendSGE: 1, MaxRecvSGE: 1}})
	require.NoError(t, err)
	return p
}

// dialed connects a stack to the puppet, which replies to its Hello with ack.
func (p *puppet) dialed(s *sdp.Stack, d sdp.FlowControl, ack bsdh.HelloAck) (*sdp.Conn, error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), hang)
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		r, err := p.l.Accept(ctx)
		if err == nil {
			p.hello, err = bsdh.ParseHello(r.PrivateData())
		}
		if err == nil {
			_, err = r.Accept(ctx, p.qp, cm.AcceptOptions{PrivateData: ack.Append(nil), Prepare: func(verbs.QP) error {
				for i := range puppetSlots {
					p.postReceive(i)
				}
				return nil
			}})
		}
		accepted <- err
	}()
	c, err := s.DialAddr(ctx, p.addr(), sdp.Dialer{FlowControl: &d, UDPPort: p.udpPort})
	require.NoError(p.t, <-accepted)
	return c, err
}

func (p *puppet) addr() netip.AddrPort { return p.l.Addr() }

// ack returns a valid HelloAck: with a ring, unless by credits.
func (p *puppet) ack(d sdp.FlowControl) bsdh.HelloAck {
	a := bsdh.HelloAck{Version: bsdh.Version, MaxAdverts: 1, ActRcvSz: puppetSlot, Bufs: puppetSlots}
	e := bsdh.Extension{Ring: puppetSlots * puppetSlot, Window: puppetSlot, RKey: p.mr.RKey(), Addr: p.mr.Addr()}
	switch d {
	case sdp.NIC:
		e.FlowControl = bsdh.FlowControlNIC
		a.Extension = e
	case sdp.RDMA:
		e.FlowControl = bsdh.FlowControlRDMA
		a.Extension = e
	}
	return a
}

func (p *puppet) postReceive(slot int) {
	_, err := p.qp.PostRecv([]verbs.RecvWR{{WRID: uint64(slot), SGList: []verbs.SGE{p.mr.SGE(slot*puppetSlot, puppetSlot)}}})
	require.NoError(p.t, err)
}

// frame returns a valid message.
func (p *puppet) frame(id bsdh.MID, ext, payload []byte) []byte {
	p.seq++
	h := bsdh.Header{MID: id, Bufs: puppetSlots, Len: uint32(bsdh.HeaderBytes + len(ext) + len(payload)), Seq: p.seq, Ack: p.heard}
	return append(append(h.Append(nil), ext...), payload...)
}

// send sends a valid message.
func (p *puppet) send(id bsdh.MID, ext []byte, payload ...byte) { p.sendRaw(p.frame(id, ext, payload)) }

// sendRaw sends bytes.
func (p *puppet) sendRaw(b []byte) {
	p.post(verbs.SendWR{Opcode: verbs.WRSend}, b)
}

// write writes to the ring of the Hello, with a notification at an offset.
func (p *puppet) write(at int, b []byte) {
	p.seq++
	p.post(verbs.SendWR{
		Opcode: verbs.WRRDMAWriteWithImm, RemoteAddr: p.hello.Extension.Addr, RKey: p.hello.Extension.RKey, Imm: uint32(bsdh.MakeImm(uint32(at), false)),
	}, b)
}

func (p *puppet) post(wr verbs.SendWR, b []byte) {
	p.t.Helper()
	n := copy(p.mr.Bytes()[puppetSlots*puppetSlot:], b)
	require.Equal(p.t, len(b), n)
	wr.WRID, wr.Flags, wr.SGList = 1<<32, verbs.SendSignaled, []verbs.SGE{p.mr.SGE(puppetSlots*puppetSlot, n)}
	_, err := p.qp.PostSend([]verbs.SendWR{wr})
	require.NoError(p.t, err)
	for sent := false; !sent; { // the memory is reused
		sent = p.poll()
	}
}

// poll waits for completions, and reports whether one was of a send.
func (p *puppet) poll() (sent bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), hang)
	defer cancel()
	wcs := make([]verbs.WC, 16)
	n, err := p.cq.PollWait(ctx, wcs)
	require.NoError(p.t, err)
	for _, wc := range wcs[:n] {
		if wc.WRID == 1<<32 {
			sent = true // or failed: the peer may have closed
			continue
		}
		p.inbox = append(p.inbox, wc) // or flushed: the peer has closed
	}
	return sent
}

// next waits for a message, and returns its header and its payload.
func (p *puppet) next() (h bsdh.Header, body []byte) {
	p.t.Helper()
	for len(p.inbox) == 0 {
		p.poll()
	}
	wc := p.inbox[0]
	require.NoError(p.t, wc.Err())
	p.inbox = p.inbox[1:]
	p.heard++
	slot := int(wc.WRID)
	b := append([]byte(nil), p.mr.Bytes()[slot*puppetSlot:][:wc.ByteLen]...)
	p.postReceive(slot)
	h, err := bsdh.ParseHeader(b)
	require.NoError(p.t, err)
	return h, b[bsdh.HeaderBytes:]
}

// receive waits for a message of a kind.
func (p *puppet) receive(id bsdh.MID) (body []byte) {
	p.t.Helper()
	h, body := p.next()
	require.Equal(p.t, id, h.MID)
	return body
}
