package cm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

// puppet is a peer that sends what a test makes it send: a device whose queue pair 1 has no
// manager.
type puppet struct {
	t    testing.TB
	dev  *rnic.Device
	pd   verbs.PD
	cq   verbs.CQ
	qp   verbs.QP
	mr   verbs.MR
	ah   verbs.AH
	port uint16 // of the adapter under test
	to   *end
}

const puppetSlots = 64

func newPuppet(t testing.TB, to *end) *puppet {
	t.Helper()
	p := &puppet{t: t, to: to}
	var err error
	p.dev, err = rnic.Open(rnic.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.dev.Close()) })
	p.pd, err = p.dev.AllocPD()
	require.NoError(t, err)
	p.cq, err = p.dev.CreateCQ(4096)
	require.NoError(t, err)
	p.mr, err = p.pd.RegMR(make([]byte, puppetSlots*512), verbs.AccessLocalWrite)
	require.NoError(t, err)
	p.qp, err = p.pd.CreateQP(verbs.QPInitAttr{Type: verbs.GSI, SendCQ: p.cq, RecvCQ: p.cq,
		Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: puppetSlots, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 512}})
	require.NoError(t, err)
	require.NoError(t, p.qp.Modify(verbs.QPAttr{State: verbs.StateInit, PortNum: 1},
		verbs.AttrState|verbs.AttrPKeyIndex|verbs.AttrPort|verbs.AttrQKey))
	require.NoError(t, p.qp.Modify(verbs.QPAttr{State: verbs.StateRTR}, verbs.AttrState))
	require.NoError(t, p.qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState|verbs.AttrSQPSN))
	for i := range puppetSlots {
		p.post(uint64(i))
	}
	p.port = p.dev.Addr().Port()
	if p.port == 4791 {
		p.port = 0
	}
	p.ah, err = p.pd.CreateAH(verbs.AHAttr{DGID: verbs.GIDFromAddr(to.m.Addr().Addr()), UDPPort: to.m.Addr().Port()})
	require.NoError(t, err)
	return p
}

func (p *puppet) post(slot uint64) {
	_, err := p.qp.PostRecv([]verbs.RecvWR{{WRID: slot, SGList: []verbs.SGE{p.mr.SGE(int(slot)*512, 512)}}})
	require.NoError(p.t, err)
}

// send sends a message.
func (p *puppet) send(tid uint64, attr mad.Attr, body mad.Message) {
	p.t.Helper()
	var b [mad.Size]byte
	mad.Put(&b, mad.Header{TID: tid, Attr: attr, UDPPort: p.port}, body)
	p.sendRaw(p.qp, b[:])
}

// sendRaw sends arbitrary bytes, from any queue pair.
func (p *puppet) sendRaw(from verbs.QP, b []byte) {
	p.t.Helper()
	_, err := from.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: b,
		AH: p.ah, RemoteQPN: wire.QPNGSI, RemoteQKey: wire.QKeyGSI}})
	require.NoError(p.t, err)
}

// receive waits for a message of a kind, and skips others.
func (p *puppet) receive(attr mad.Attr) (mad.Header, mad.Message) {
	p.t.Helper()
	ctx := soon(p.t)
	for {
		var wc [1]verbs.WC
		_, err := p.cq.PollWait(ctx, wc[:])
		require.NoError(p.t, err, "waiting for %v", attr)
		if !wc[0].Opcode.IsRecv() {
			continue
		}
		require.NoError(p.t, wc[0].Err())
		at := int(wc[0].WRID) * 512
		b := append([]byte(nil), p.mr.Bytes()[at+wire.GRHLen:at+int(wc[0].ByteLen)]...)
		p.post(wc[0].WRID)
		h, body, drop := mad.Parse(b)
		require.Equal(p.t, mad.DropNone, drop)
		if h.Attr == attr {
			return h, body
		}
	}
}

// req returns a valid REQ.
func (p *puppet) req(port uint16) *mad.REQ {
	self := p.dev.Addr().Addr()
	to := p.to.m.Addr().Addr()
	q := &mad.REQ{
		LocalID: 77, ServiceID: mad.ServiceIDOf(mad.PortSpaceTCP, port), QPN: 500, StartingPSN: 9, CAGUID: 1,
		RemoteResponseTimeout: 17, LocalResponseTimeout: 12, MaxCMRetries: 3, MTU: 3, PKey: 0xffff, RetryCount: 5, RNRRetry: 6,
		ResponderResources: 3, InitiatorDepth: 2,
		Primary: mad.Path{LocalGID: verbs.GIDFromAddr(self), RemoteGID: verbs.GIDFromAddr(to), AckTimeout: 15,
			FlowLabel: 0x12345, TrafficClass: 8, HopLimit: 9, SL: 3},
		PrivateData: make([]byte, mad.CMAHeaderLen),
	}
	mad.CMAHeader{Src: p.dev.Addr(), Dst: to}.Put(q.PrivateData)
	return q
}
