package sim_test

import (
	"github.com/softrnic/softrnic/verbs"
)

// request is a posted send request.
type request struct {
	id       uint64
	op       verbs.WROpcode
	signaled bool
	msg      *message // SEND and WRITE
	result   span     // READ and atomics: offset in results
	expect   []byte   // READ
	atomic   *operation
}

// message is the data of a SEND or WRITE.
type message struct {
	from   *host
	qpn    uint32 // UD: of the sender
	pieces []span // offset in the sender's noise
	length int
	write  bool
	off    int // WRITE: in the target
	imm    uint32
	hasImm bool
	inv    uint32
	hasInv bool
}

const (
	grh         = 40
	maxDatagram = 2048 // that the UD queue pairs send
)

// compose draws a request, or returns nil if the drawn one is not possible now.
func (h *qpProgram) compose() (wr verbs.SendWR, r *request) {
	w := h.world
	switch {
	case h.typ == verbs.UD:
		return h.composeDatagram()
	case h.typ == verbs.UC:
		wr.Opcode = pick(w, verbs.WRSend, verbs.WRSendWithImm, verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm)
	default:
		wr.Opcode = pick(w, verbs.WRSend, verbs.WRSend, verbs.WRSendWithImm, verbs.WRSendWithInv,
			verbs.WRRDMAWrite, verbs.WRRDMAWrite, verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm,
			verbs.WRRDMARead, verbs.WRRDMARead, verbs.WRRDMARead, verbs.WRAtomicFetchAdd, verbs.WRAtomicFetchAdd, verbs.WRAtomicCmpSwap,
			verbs.WRBindMW, verbs.WRLocalInv, verbs.WRFlush, verbs.WRAtomicWrite)
	}
	if w.chance(15) {
		wr.Flags |= verbs.SendFence
	}
	if w.chance(20) {
		wr.Flags |= verbs.SendSolicited
	}
	r = &request{op: wr.Opcode}
	ok := true
	switch wr.Opcode {
	case verbs.WRRDMARead:
		ok = h.composeRead(&wr, r)
	case verbs.WRAtomicFetchAdd, verbs.WRAtomicCmpSwap:
		ok = h.composeAtomic(&wr, r)
	case verbs.WRAtomicWrite:
		ok = h.composeAtomicWrite(&wr, r)
	case verbs.WRFlush:
		h.composeFlush(&wr)
	case verbs.WRBindMW:
		ok = h.window.bind(&wr)
	case verbs.WRLocalInv:
		ok = h.window.invalidate(&wr)
	case verbs.WRSendWithInv:
		ok = h.peer.window.closeByPeer(&wr)
		fallthrough
	default:
		ok = ok && h.composeMessage(&wr, r)
	}
	if !ok {
		return wr, nil
	}
	return wr, r
}

// composeMessage draws the data of a SEND or WRITE.
func (h *qpProgram) composeMessage(wr *verbs.SendWR, r *request) bool {
	w := h.world
	m := &message{from: h.host, length: w.length(h.pair.mtu.Bytes(), h.pair.most)}
	r.msg = m
	switch wr.Opcode {
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm:
		off, ok := h.alloc(h.peer.target, m.length)
		if !ok {
			return false
		}
		m.write, m.off = true, off
		h.remote(wr, off)
	case verbs.WRSendWithInv:
		m.hasInv, m.inv = true, wr.InvKey
	}
	h.fill(wr, m)
	if m.write {
		h.peer.target.store(m.off, m)
		h.written = append(h.written, span{m.off, m.length})
	}
	if h.typ == verbs.UC {
		h.peer.coming = append(h.peer.coming, m)
	} else if !m.write || m.hasImm {
		h.peer.inbox = append(h.peer.inbox, m)
		h.peer.schedule()
	}
	return true
}

// composeAtomicWrite draws an ATOMIC WRITE, which is a WRITE of an aligned word.
func (h *qpProgram) composeAtomicWrite(wr *verbs.SendWR, r *request) bool {
	off, ok := h.alloc(h.peer.target, 15)
	if !ok {
		return false
	}
	r.msg = &message{from: h.host, length: 8, write: true, off: (off + 7) &^ 7}
	h.remote(wr, r.msg.off)
	h.fill(wr, r.msg)
	h.peer.target.store(r.msg.off, r.msg)
	h.written = append(h.written, span{r.msg.off, r.msg.length})
	return true
}

// composeFlush draws a FLUSH of a part of the target, or of all of it.
func (h *qpProgram) composeFlush(wr *verbs.SendWR) {
	w, target := h.world, h.peer.target
	wr.RKey = target.mr.RKey()
	wr.Flush = verbs.Flush{Placement: verbs.FlushGlobal, Length: uint32(w.rand.IntN(target.mr.Len()))}
	if w.chance(50) {
		wr.Flush.Selectivity, wr.RemoteAddr = verbs.FlushRegion, w.rand.Uint64()
	}
}

// fill draws the source of the data, and the immediate data.
func (h *qpProgram) fill(wr *verbs.SendWR, m *message) {
	w := h.world
	if wr.Opcode == verbs.WRSendWithImm || wr.Opcode == verbs.WRRDMAWriteWithImm {
		m.hasImm, m.imm = true, w.rand.Uint32()
		wr.Imm = m.imm
	}
	inline := m.length <= h.cap.MaxInlineData && w.chance(30)
	pieces := w.between(1, h.cap.MaxSendSGE)
	if inline {
		pieces = 1
	}
	left := m.length
	for i := range pieces {
		n := left
		if i < pieces-1 {
			n = w.between(0, left)
		}
		m.pieces = append(m.pieces, span{w.rand.IntN(sourceSize - n + 1), n})
		left -= n
	}
	if inline {
		p := m.pieces[0]
		wr.Flags |= verbs.SendInline
		wr.InlineData = h.host.noise[p.off : p.off+p.n]
		return
	}
	for _, p := range m.pieces {
		wr.SGList = append(wr.SGList, h.host.source.SGE(p.off, p.n))
	}
}

// alloc allocates n bytes in an arena that this program writes to. A full one is reused from the
// start if no request of the program in flight uses it.
func (h *qpProgram) alloc(a *arena, n int) (off int, ok bool) {
	if off, ok = a.alloc(n); ok || h.typ != verbs.RC || len(h.posted) > 0 || h.pair.killed {
		return off, ok
	}
	a.check("full arena of " + h.String())
	a.clear()
	if h.peer != nil && a == h.peer.target {
		h.written = h.written[:0]
	}
	return a.alloc(n)
}

// remote addresses off in the peer's target, through its window if there is one.
func (h *qpProgram) remote(wr *verbs.SendWR, off int) {
	wr.RemoteAddr, wr.RKey = uint64(off), h.peer.target.mr.RKey()
	if h.typ == verbs.RC && h.peer.window.bound && h.world.chance(50) {
		h.world.seen["request through a window"]++
		wr.RKey = h.peer.window.key
		h.peer.window.users = h.nextID + 1 // the request's number
	}
}

// composeRead draws a READ of known data.
func (h *qpProgram) composeRead(wr *verbs.SendWR, r *request) bool {
	w := h.world
	n := w.length(h.pair.mtu.Bytes(), h.pair.most)
	var from span
	own := len(h.written) > 0 && w.chance(50)
	if own {
		from = pick(w, h.written...)
		from.off += w.between(0, from.n)
		from.n = min(n, h.peer.target.next-from.off)
	} else {
		from = span{w.rand.IntN(sourceSize - n + 1), n}
	}
	off, ok := h.alloc(h.results, from.n)
	if !ok {
		return false
	}
	r.result = span{off, from.n}
	if own {
		h.remote(wr, from.off)
		r.expect = h.peer.target.want[from.off : from.off+from.n]
	} else {
		wr.RemoteAddr, wr.RKey = uint64(from.off), h.peer.host.source.RKey()
		r.expect = h.peer.host.noise[from.off : from.off+from.n]
	}
	if cut := w.between(0, from.n); cut > 0 && h.cap.MaxSendSGE > 1 {
		wr.SGList = []verbs.SGE{h.results.mr.SGE(off, cut), h.results.mr.SGE(off+cut, from.n-cut)}
	} else {
		wr.SGList = []verbs.SGE{h.results.mr.SGE(off, from.n)}
	}
	return true
}

// store writes a message to the model.
func (a *arena) store(off int, m *message) {
	for _, p := range m.pieces {
		off += copy(a.want[off:], m.from.noise[p.off:p.off+p.n])
	}
}

// datagrams creates a UD queue pair.
func (w *world) datagrams(on *host) {
	h := w.newQPProgram(on, verbs.UD, nil)
	w.must(verbs.ActivateUD(h.qp, h.qkey, w.rand.Uint32N(1<<24)))
	w.loose = append(w.loose, h)
}

// composeDatagram draws a SEND to any of the UD queue pairs, sometimes with an invalid Q_Key.
func (h *qpProgram) composeDatagram() (wr verbs.SendWR, r *request) {
	w := h.world
	to := pick(w, w.loose...)
	wr.Opcode = pick(w, verbs.WRSend, verbs.WRSendWithImm)
	wr.AH = h.handle(to.host)
	wr.RemoteQPN, wr.RemoteQKey = to.qp.Num(), to.qkey
	m := &message{from: h.host, qpn: h.qp.Num(), length: min(maxDatagram, w.length(1024, maxDatagram))}
	h.fill(&wr, m)
	if w.chance(10) {
		wr.RemoteQKey += 8
	} else {
		to.coming = append(to.coming, m)
	}
	return wr, &request{op: wr.Opcode, msg: m}
}

// handle returns an address handle for a host.
func (h *qpProgram) handle(to *host) verbs.AH {
	for _, ah := range h.ahs {
		if ah.Attr().DGID == to.dev.AddressVector().DGID && ah.Attr().UDPPort == to.dev.AddressVector().UDPPort {
			return ah
		}
	}
	ah, err := h.host.pd.CreateAH(to.dev.AddressVector())
	h.world.must(err)
	h.ahs = append(h.ahs, ah)
	return ah
}
