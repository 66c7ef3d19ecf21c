package qp

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/qpstate"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// node is a queue pair with its environment: memory, a host that records, an address.
type node struct {
	*Core
	t testing.TB
	handles
	addr netip.AddrPort
	mem  *memory
	srq  *recvQueue // or nil

	base uint64 // of the node's region
	key  uint32 // its lkey and rkey
	buf  []byte // the bytes of the region

	wcs       []verbs.WC
	solicited []bool
	events    []verbs.EventType
	whys      []*verbs.Failure
}

// Complete, Event and the methods of handles make the node a Host.
func (n *node) Complete(wc verbs.WC, solicited bool) {
	n.wcs, n.solicited = append(n.wcs, wc), append(n.solicited, solicited)
}

func (n *node) Event(e verbs.EventType, why *verbs.Failure) {
	n.events, n.whys = append(n.events, e), append(n.whys, why)
}

// regionBytes is the size of a node's region.
const regionBytes = 64 << 10

// allAccess is every permission.
const allAccess = verbs.AccessLocalWrite | verbs.AccessRemote | verbs.AccessFlushGlobal

// newNode returns a queue pair in RESET with one region that permits all accesses.
func newNode(t testing.TB, name byte, o *options) *node {
	n := &node{t: t, mem: newMemory(), base: uint64(name) << 32, buf: make([]byte, regionBytes)}
	n.addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, name}), Port)
	if o.v6 {
		n.addr = netip.AddrPortFrom(netip.AddrFrom16([16]byte{0: 0xfd, 15: name}), Port)
	}
	n.key = n.mem.add(n.base, n.buf, allAccess)
	cfg := Config{
		Num: 0x100 + uint32(name), Type: o.typ, Host: n, Memory: n.mem, NoCredits: !o.credits,
		Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64},
	}
	if o.srq {
		n.srq = &recvQueue{ring: ring{limit: 64}, maxSGE: 4}
		cfg.Shared = n.srq
	}
	if o.config != nil {
		o.config(&cfg)
	}
	n.Core = New(cfg)
	return n
}

// sge returns an element of the node's region.
func (n *node) sge(off, length int) verbs.SGE {
	return verbs.SGE{Addr: n.base + uint64(off), Length: uint32(length), LKey: n.key}
}

// post posts send requests that must be accepted.
func (n *node) post(now reliability.Time, wrs ...verbs.SendWR) {
	n.t.Helper()
	k, err := n.PostSend(now, wrs)
	require.NoError(n.t, err)
	require.Equal(n.t, len(wrs), k)
}

// recv posts a receive of size bytes at off of the region.
func (n *node) recv(id uint64, off, size int) {
	n.t.Helper()
	wr := verbs.RecvWR{WRID: id, SGList: []verbs.SGE{n.sge(off, size)}}
	if n.srq != nil {
		n.srq.push(&wr)
		return
	}
	_, err := n.PostRecv([]verbs.RecvWR{wr})
	require.NoError(n.t, err)
}

// takeCompletions returns the completions since the last call as text.
func (n *node) takeCompletions() []string {
	s := []string{}
	for i := range n.wcs {
		s = append(s, wcString(&n.wcs[i]))
	}
	n.wcs, n.solicited = nil, nil
	return s
}

func wcString(wc *verbs.WC) string {
	if wc.Status != verbs.WCSuccess {
		return fmt.Sprintf("%d %v", wc.WRID, wc.Status)
	}
	s := fmt.Sprintf("%d %v len=%d", wc.WRID, wc.Opcode, wc.ByteLen)
	if wc.Flags&verbs.WCWithImm != 0 {
		s += fmt.Sprintf(" imm=%x", wc.Imm)
	}
	if wc.Flags&verbs.WCWithInv != 0 {
		s += fmt.Sprintf(" inv=%x", wc.InvKey)
	}
	return s
}

// raised returns the events since the last call.
func (n *node) raised() []verbs.EventType {
	e := n.events
	n.events, n.whys = nil, nil
	return e
}

// options are the options of a pair.
type options struct {
	typ     verbs.QPType
	mtu     verbs.MTU
	psn     [2]uint32 // initial PSNs of a and b
	credits bool
	srq     bool
	v6      bool
	config  func(*Config)
	attr    func(*verbs.QPAttr)
}

type option func(*options)

func ofType(t verbs.QPType) option            { return func(o *options) { o.typ = t } }
func withMTU(m verbs.MTU) option              { return func(o *options) { o.mtu = m } }
func withPSN(psn uint32) option               { return func(o *options) { o.psn[0] = psn } }
func withCredits(o *options)                  { o.credits = true }
func withSRQ(o *options)                      { o.srq = true }
func withIPv6(o *options)                     { o.v6 = true }
func withConfig(f func(*Config)) option       { return func(o *options) { o.config = f } }
func withAttr(f func(a *verbs.QPAttr)) option { return func(o *options) { o.attr = f } }
func withAccess(f verbs.AccessFlags) option {
	return withAttr(func(a *verbs.QPAttr) { a.AccessFlags = f })
}
func withRdAtomic(out, serve uint8) option {
	return withAttr(func(a *verbs.QPAttr) { a.MaxRdAtomic, a.MaxDestRdAtomic = out, serve })
}

// pair is two queue pairs connected to each other. The PSNs of a start just before they wrap, so
// that every test of several packets covers the wrap.
type pair struct {
	t    testing.TB
	a, b *node
	psn  [2]uint32
	mtu  int
	now  reliability.Time
}

const nearWrap = 0xfffffe

func newOptions(opts []option) *options {
	o := &options{typ: verbs.RC, mtu: verbs.MTU256, psn: [2]uint32{nearWrap, 0x1000}}
	for _, opt := range opts {
		opt(o)
	}
	return o
}

// connect returns two connected queue pairs in RTS.
func connect(t testing.TB, opts ...option) *pair {
	t.Helper()
	p := unconnected(t, opts...)
	o := newOptions(opts)
	p.modifyTo(p.a, p.b, p.psn[0], p.psn[1], o, verbs.StateRTS)
	p.modifyTo(p.b, p.a, p.psn[1], p.psn[0], o, verbs.StateRTS)
	return p
}

// unconnected returns two queue pairs in RESET.
func unconnected(t testing.TB, opts ...option) *pair {
	o := newOptions(opts)
	return &pair{
		t: t, a: newNode(t, 'A', o), b: newNode(t, 'B', o), psn: o.psn, mtu: o.mtu.Bytes(), now: 1,
	}
}

// attributes returns the attributes of n for a connection to peer.
func attributes(peer *node, sq, rq uint32, o *options) verbs.QPAttr {
	a := verbs.QPAttr{
		PathMTU: o.mtu, SQPSN: sq, RQPSN: rq, DestQPN: peer.Num(), PortNum: 1, QKey: 0x1234,
		AccessFlags: verbs.AccessRemote | verbs.AccessFlushGlobal, MaxRdAtomic: 4, MaxDestRdAtomic: 4, MinRNRTimer: 12,
		Timeout: 14, RetryCnt: 7, RNRRetry: 7,
		AV: verbs.AHAttr{DGID: verbs.GIDFromAddr(peer.addr.Addr())},
	}
	if o.attr != nil {
		o.attr(&a)
	}
	return a
}

// ladder has the states up to RTS in order.
var ladder = []verbs.QPState{verbs.StateInit, verbs.StateRTR, verbs.StateRTS}

// modifyTo modifies n through the states up to state to.
func (p *pair) modifyTo(n, peer *node, sq, rq uint32, o *options, to verbs.QPState) {
	p.t.Helper()
	a := attributes(peer, sq, rq, o)
	for _, s := range ladder {
		if s > to || s <= n.State() {
			continue
		}
		a.State = s
		require.NoError(p.t, n.Modify(p.now, &a, qpstate.RequiredAttrs(n.typ, n.State(), s)|verbs.AttrState))
	}
}

// modify modifies n to a state without other attributes.
func (p *pair) modify(n *node, to verbs.QPState) error {
	return n.Modify(p.now, &verbs.QPAttr{State: to}, verbs.AttrState)
}

// peer returns the other node.
func (p *pair) peer(n *node) *node {
	if n == p.a {
		return p.b
	}
	return p.a
}

// drain drains n: it returns all packets that n has to send, acknowledgements last.
func (p *pair) drain(n *node) []*wire.Packet {
	p.t.Helper()
	pkts := p.takeNoAck(n)
	out := &batch{room: 1}
	require.False(p.t, n.DrainAck(p.now, out))
	return append(pkts, p.parse(n, out)...)
}

// takeNoAck returns all packets that n has to send except a pending acknowledgement.
func (p *pair) takeNoAck(n *node) []*wire.Packet {
	p.t.Helper()
	out := &batch{room: 1 << 20}
	require.False(p.t, n.Drain(p.now, out))
	return p.parse(n, out)
}

// parse parses the packets of a batch as the peer of n does.
func (p *pair) parse(n *node, out *batch) []*wire.Packet {
	p.t.Helper()
	pkts := []*wire.Packet{}
	for _, d := range out.packets {
		d.leave()
		pkt := &wire.Packet{Src: n.addr, Dst: d.to.Dst, TOS: d.to.TrafficClass}
		require.Equal(p.t, wire.DropNone, pkt.Parse(d.raw))
		pad := d.raw[len(d.raw)-wire.ICRCLen-int(pkt.BTH.Pad) : len(d.raw)-wire.ICRCLen]
		require.Equal(p.t, make([]byte, len(pad)), pad, "pad bytes are zero")
		pkts = append(pkts, pkt)
	}
	return pkts
}

// deliver handles packets at n and returns the result of the last one.
func (p *pair) deliver(n *node, pkts ...*wire.Packet) (d wire.Drop) {
	for _, pkt := range pkts {
		p.now++
		d = n.HandlePacket(p.now, pkt)
		checkInvariants(p.t, n.Core)
	}
	return d
}

// exchange exchanges packets until none are left, and returns all of them as text. The time
// advances by one nanosecond a packet only.
func (p *pair) exchange() []string {
	p.t.Helper()
	var all []string
	for range 10_000 {
		ab, ba := p.drain(p.a), p.drain(p.b)
		if len(ab)+len(ba) == 0 {
			return all
		}
		all = append(all, p.describePackets(p.a, ab)...)
		all = append(all, p.describePackets(p.b, ba)...)
		p.deliver(p.b, ab...)
		p.deliver(p.a, ba...)
	}
	require.Fail(p.t, "the exchange does not end", strings.Join(all[len(all)-20:], "\n"))
	return nil
}

// wait advances the time to n's deadline, which must be after exactly d.
func (p *pair) wait(n *node, d int64) {
	p.t.Helper()
	require.Equal(p.t, d, int64(n.Deadline()-p.now), "nanoseconds to the deadline")
	p.now = n.Deadline()
	n.Advance(p.now)
}

// advanceToDeadline advances the time to n's deadline.
func (p *pair) advanceToDeadline(n *node) {
	p.t.Helper()
	require.NotZero(p.t, n.Deadline(), "no deadline")
	p.now = max(p.now, n.Deadline())
	n.Advance(p.now)
}

// describePackets describes packets of from, with PSNs relative to the initial one.
func (p *pair) describePackets(from *node, pkts []*wire.Packet) []string {
	s := []string{}
	for _, pkt := range pkts {
		s = append(s, p.describePacket(from, pkt))
	}
	return s
}

func (p *pair) describePacket(from *node, pkt *wire.Packet) string {
	base := p.psn[0]
	if (from == p.a) != pkt.Info.Request {
		base = p.psn[1]
	}
	i := pkt.Info
	s := fmt.Sprintf("%s %d", strings.SplitN(i.Name, "_", 2)[1], pkt.BTH.PSN.Sub(wire.PSN(base)))
	if len(pkt.Payload) > 0 {
		s += fmt.Sprintf(" len=%d", len(pkt.Payload))
	}
	if i.RETH {
		h := pkt.RETH()
		s += fmt.Sprintf(" @%x+%d", h.VA-p.peer(from).base, h.Length)
	}
	if i.Imm {
		s += fmt.Sprintf(" imm=%x", pkt.Imm())
	}
	if i.IETH {
		s += fmt.Sprintf(" inv=%x", pkt.IETH().RKey)
	}
	if i.AETH {
		h := pkt.AETH()
		s += fmt.Sprintf(" %02x msn=%d", uint8(h.Syndrome), h.MSN)
	}
	if pkt.BTH.SE {
		s += " SE"
	}
	if pkt.BTH.AckReq {
		s += " A"
	}
	return s
}

// response returns a packet of from with the given opcode, PSN (relative to the initial one of its
// requester), syndrome if the opcode has one, and payload.
func (p *pair) response(from *node, op wire.Opcode, psn int, s wire.Syndrome, payload []byte) *wire.Packet {
	p.t.Helper()
	i := op.Info()
	base := p.psn[0]
	if (from == p.a) != i.Request {
		base = p.psn[1]
	}
	return p.packet(from, wire.BTH{Opcode: op, PSN: wire.PSN(base).Add(psn)}, payload, func(b []byte) {
		if i.AETH {
			wire.AETH{Syndrome: s}.Put(b[wire.BTHLen:])
		}
	})
}

// packet returns a packet of from for its peer; fill writes its extended headers.
func (p *pair) packet(from *node, h wire.BTH, payload []byte, fill func(b []byte)) *wire.Packet {
	p.t.Helper()
	i := h.Opcode.Info()
	pad := wire.PadFor(len(payload))
	raw := make([]byte, i.HeaderLen+len(payload)+pad+wire.ICRCLen)
	h.PKey, h.Pad, h.DestQPN = wire.DefaultPKey, uint8(pad), p.peer(from).Num()
	h.Put(raw)
	if fill != nil {
		fill(raw)
	}
	copy(raw[i.HeaderLen:], payload)
	pkt := &wire.Packet{Src: from.addr, Dst: p.peer(from).addr}
	require.Equal(p.t, wire.DropNone, pkt.Parse(raw))
	return pkt
}

// Num returns the queue pair's number.
func (c *Core) Num() uint32 { return c.num }

// DestQPN returns the number of the peer's queue pair.
func (c *Core) DestQPN() uint32 { return c.attr.DestQPN }
