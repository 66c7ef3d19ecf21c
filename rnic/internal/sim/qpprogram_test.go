package sim_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/rnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// pair is a connection.
type pair struct {
	world  *world
	typ    verbs.QPType
	ends   [2]*qpProgram
	mtu    verbs.MTU
	most   int // bytes of its longest message
	known  bool
	sel    bool // selective retransmission
	lives  int  // number of times that it may still be broken
	killed bool // it was broken: any request may fail
	down   bool // about to be recreated
}

// qpProgram is a queue pair and its program. Only it writes to its peer's memory, so only the order
// of its requests matters.
type qpProgram struct {
	world     *world
	host      *host
	pair      *pair      // nil for UD
	peer      *qpProgram // nil for UD
	typ       verbs.QPType
	qp        verbs.QP
	cap       verbs.QPCap
	signalAll bool
	qkey      uint32
	ahs       []verbs.AH

	target  *arena // the peer writes here; nil for UD
	results *arena // results of reads and atomics
	landing *landing

	posted   []*request // oldest first
	receives []*receive // own receive queue, oldest first
	inbox    []*message // RC: messages of the peer that are not received
	coming   []*message // UC, UD: all messages sent to this program
	written  []span     // writes to the peer's target since it was last cleared
	window   *window
	lane     *lane

	nextID   uint64
	budget   int // requests to post
	ticking  bool
	nap      time.Duration
	draining bool // SQD requested
	gone     bool // destroyed early
}

type span struct{ off, n int }

func (h *qpProgram) String() string {
	if h.pair == nil {
		return h.host.name + "/ud"
	}
	for i, p := range h.world.pairs {
		if p == h.pair {
			return fmt.Sprintf("%s/%d", h.host.name, i)
		}
	}
	return h.host.name
}

// pair creates a connection between two hosts.
func (w *world) pair(typ verbs.QPType, a, b *host) {
	p := &pair{world: w, typ: typ, mtu: verbs.MTU(w.between(1, 5)), known: w.chance(60)}
	p.sel = p.known && w.chance(60)
	p.most = pick(w, 300, 3000, 20_000, 64<<10)
	if typ == verbs.RC && w.chance(30) {
		p.lives = w.between(1, 2)
	}
	w.pairs = append(w.pairs, p)
	for i, h := range []*host{a, b} {
		p.ends[i] = w.newQPProgram(h, typ, p)
	}
	p.ends[0].peer, p.ends[1].peer = p.ends[1], p.ends[0]
	p.connect()
	w.notes = append(w.notes, fmt.Sprintf("%v %v-%v mtu %d most %d known %v selective %v", typ, p.ends[0], p.ends[1], p.mtu.Bytes(), p.most, p.known, p.sel))
	if p.lives > 0 {
		p.ends[0].host.dev.ScheduleAt(w.randomTime(20), p.kill)
	}
}

// newQPProgram creates a queue pair with its memory.
func (w *world) newQPProgram(on *host, typ verbs.QPType, p *pair) *qpProgram {
	h := &qpProgram{world: w, host: on, pair: p, typ: typ, budget: w.between(3, 60), qkey: uint32(w.between(1, 3))}
	h.cap = verbs.QPCap{
		MaxSendWR: w.between(2, 40), MaxRecvWR: w.between(1, 8),
		MaxSendSGE: w.between(1, 4), MaxRecvSGE: w.between(1, 4), MaxInlineData: w.between(0, 300),
	}
	h.create()
	most := maxDatagram
	if p != nil {
		most = p.most
		h.target = newArena(on, 2*most+1<<12, targetAccess)
		if typ == verbs.RC {
			h.lane = on.words.newLane() // used by the peer
			h.window = newWindow(h)
		}
	}
	h.results = newArena(on, 2*most+1<<12, 0)
	if h.srq() == nil {
		h.landing = newLanding(on, h.cap.MaxRecvWR, most+grh, h.cap.MaxRecvSGE)
	}
	return h
}

// srq returns the shared receive queue, if the program uses one.
func (h *qpProgram) srq() *shared {
	if h.typ == verbs.UD || h.pair.most > sharedMost {
		return nil
	}
	return h.host.srq
}

// create creates the queue pair.
func (h *qpProgram) create() {
	w := h.world
	init := verbs.QPInitAttr{
		Type: h.typ, SendCQ: pick(w, h.host.cqs...), RecvCQ: pick(w, h.host.cqs...), Cap: h.cap,
		SelectiveSignaling: !w.chance(10), NoCredits: w.chance(20),
	}
	h.signalAll = !init.SelectiveSignaling
	if s := h.srq(); s != nil {
		init.SRQ = s.queue
	}
	var err error
	h.qp, err = h.host.pd.CreateQP(init)
	w.must(err)
	h.host.halves[h.qp.Num()] = h
	if w.trace != nil {
		w.trace.NameQP(h.host.dev, h.qp.Num(), h.String())
	}
}

// connect modifies both ends to RTS.
func (p *pair) connect() {
	w := p.world
	options := verbs.ConnectOptions{
		MTU: p.mtu, RNRDelay: time.Duration(wire.RNRNanos(uint8(w.between(1, 14)))), AckTimeout: verbs.AckTimeout(uint8(w.between(13, 15))),
		MaxRdAtomic: w.between(1, 8), MaxDestRdAtomic: 8, Access: verbs.AccessRemote | verbs.AccessFlushGlobal,
	}
	var ends [2]sim.Endpoint
	for i, h := range p.ends {
		ends[i] = sim.Endpoint{Device: h.host.dev, QP: h.qp, Options: options, HideRecvBuffer: !p.known, Selective: p.sel}
		if w.chance(20) {
			ends[i].PSN = 1<<24 - uint32(w.between(1, 20)) // close to the wrap
		}
	}
	w.must(w.sim.Connect(ends[0], ends[1]))
}

// randomTime returns a time up to so many paces ahead.
func (w *world) randomTime(paces int) time.Duration {
	return w.sim.Now() + time.Duration(w.rand.Int64N(int64(paces)*int64(w.pace)))
}

// start schedules the program of the program at intervals.
func (h *qpProgram) start() {
	h.nap = 2 * h.world.pace
	h.schedule()
}

func (h *qpProgram) schedule() {
	if h.ticking || h.gone {
		return
	}
	h.ticking = true
	w := h.world
	h.host.dev.ScheduleAt(w.sim.Now()+1+time.Duration(w.rand.Int64N(int64(h.nap))), func() {
		h.ticking = false
		h.tick()
	})
}

// longNap is the maximum interval between polls of an idle program.
const longNap = 20 * time.Millisecond

// tick posts requests at random, and schedules itself until all are posted.
func (h *qpProgram) tick() {
	if h.gone || h.pair != nil && h.pair.down {
		return
	}
	did := h.postReceives()
	if h.budget > 0 {
		did = h.postRequests() || did
	}
	if did && (h.pair == nil || !h.pair.killed) {
		h.nap = 2 * h.world.pace
	} else {
		h.nap = min(2*h.nap, longNap)
	}
	if h.budget > 0 || len(h.posted) > 0 || len(h.inbox) > 0 {
		h.schedule()
	}
}

// postRequests posts a list of requests.
func (h *qpProgram) postRequests() bool {
	w := h.world
	if h.draining {
		return false
	}
	if h.typ == verbs.RC && w.chance(3) && h.drain() {
		return true
	}
	room := h.cap.MaxSendWR - len(h.posted)
	if room < 1 {
		return false
	}
	var list []verbs.SendWR
	for range min(w.between(1, 4), h.budget, room) {
		wr, r := h.compose()
		if r == nil {
			continue
		}
		h.nextID++
		r.id, wr.WRID = h.nextID, h.nextID
		// The last one that fits must be signaled, otherwise the completion of the others is not
		// known.
		if r.signaled = h.budget == 1 || len(h.posted)+2 >= h.cap.MaxSendWR || w.chance(60); r.signaled {
			wr.Flags |= verbs.SendSignaled
		}
		h.posted = append(h.posted, r)
		h.budget--
		list = append(list, wr)
	}
	if len(list) == 0 {
		return false
	}
	n, err := h.qp.PostSend(list)
	if err != nil {
		w.fail("%v: posted %d of %d: %v", h, n, len(list), err)
	}
	return true
}

// drain modifies the queue pair to SQD; the event takes it back to RTS.
func (h *qpProgram) drain() bool {
	if h.qp.State() != verbs.StateRTS {
		return false
	}
	h.draining = true
	h.world.must(h.qp.Modify(verbs.QPAttr{State: verbs.StateSQD}, verbs.AttrState))
	return true
}

// drained handles EventSQDrained.
func (h *qpProgram) drained() {
	drained := h.qp
	h.host.dev.ScheduleAt(h.world.randomTime(5), func() {
		if h.gone || h.qp != drained || !h.draining {
			return
		}
		h.draining = false
		if h.qp.State() == verbs.StateSQD {
			h.world.must(h.qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState))
		}
		h.schedule()
	})
}

// check checks the program at the end of the run.
func (h *qpProgram) check() {
	w := h.world
	if len(h.posted) > 0 || len(h.inbox) > 0 {
		w.fail("%v: %d requests are not complete, %d messages have not arrived", h, len(h.posted), len(h.inbox))
	}
	if s := h.qp.State(); s != verbs.StateRTS && !(h.pair != nil && h.pair.killed) {
		w.fail("%v is in %v", h, s)
	}
	h.results.check("results of " + h.String())
	if h.landing != nil {
		h.landing.check("receives of "+h.String(), h.receives)
	}
	if h.target == nil {
		return
	}
	if h.typ == verbs.RC {
		h.target.check("target of " + h.String())
		return
	}
	for i, b := range h.target.mr.Bytes() { // parts of lost messages may be missing
		if b != 0 && b != h.target.want[i] {
			w.fail("target of %v: byte %d is %#x and neither 0 nor %#x", h, i, b, h.target.want[i])
		}
	}
}

// dismantle frees the objects of the program except its queue pair.
func (h *qpProgram) dismantle() {
	w := h.world
	for _, ah := range h.ahs {
		w.must(ah.Close())
	}
	if h.window != nil {
		w.must(h.window.mw.Close())
	}
	if h.target != nil {
		w.must(h.target.mr.Close())
	}
	w.must(h.results.mr.Close())
	if h.landing != nil {
		w.must(h.landing.arena.mr.Close())
	}
}

// checkCounters compares the adapter's counters with the executed requests.
func (h *host) checkCounters() {
	s, w := h.dev.Stats(), h.world
	equal := func(what string, counted, real uint64) {
		if counted != real {
			w.fail("%s: %s is %d, the packets say %d: %+v", h.name, what, counted, real, s)
		}
	}
	equal("sent_pkts", s.Counters.SentPkts, h.dev.Sent.Packets)
	equal("sent_bytes", s.Counters.SentBytes, h.dev.Sent.Payload)
	equal("send_rnr_err", s.Counters.SendRNRErr, h.dev.Sent.RNRNAKs)
	equal("send_seq_err", s.Counters.SendSeqErr, h.dev.Sent.SeqNAKs)
	equal("cnp_sent", s.Counters.CNPSent, h.dev.Sent.CNPs)
	before := uint64(0)
	for _, reason := range []string{"truncated", "too_long", "bad_opcode", "bad_version", "bad_pad", "bad_length", "bad_icrc",
		"malformed", "unknown_qpn", "not_attached", "qp_state", "wrong_transport", "wrong_source", "bad_pkey"} {
		before += s.Drops[reason]
	}
	equal("rcvd_pkts and early drops", s.Counters.RcvdPkts+before, h.dev.Received.Packets)
	if s.Counters.RcvdRNRErr > h.dev.Received.RNRNAKs || s.Counters.RcvdSeqErr > h.dev.Received.SeqNAKs {
		w.fail("%s counts more NAKs than arrived: %+v", h.name, s)
	}
	equal("rdma_recvs", s.Counters.RDMARecvs, h.received)
	if !h.killed { // the result of interrupted requests is unknown
		equal("rdma_sends", s.Counters.RDMASends, h.sent)
	}
}

// equalTo reports whether b is the message.
func (m *message) equalTo(b []byte) bool {
	if len(b) != m.length {
		return false
	}
	for _, p := range m.pieces {
		if !bytes.Equal(m.from.noise[p.off:p.off+p.n], b[:p.n]) {
			return false
		}
		b = b[p.n:]
	}
	return true
}
