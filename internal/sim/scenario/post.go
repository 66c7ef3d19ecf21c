package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/verbs"
)

// send posts a request, or a list of equal ones.
func (r *runner) send(op verbs.WROpcode, w *words) error {
	q := r.qp(w)
	if w.err != nil {
		return w.err
	}
	wr := verbs.SendWR{WRID: w.number("wr", "", 0), Opcode: op, Flags: verbs.SendSignaled}
	for flag, f := range map[string]verbs.SendFlags{"fence": verbs.SendFence, "solicited": verbs.SendSolicited, "inline": verbs.SendInline} {
		if w.flag(flag) {
			wr.Flags |= f
		}
	}
	if w.flag("unsignaled") {
		wr.Flags &^= verbs.SendSignaled
	}
	local := r.regions[q.dev.Name()]
	var err error
	switch op {
	case verbs.WRBindMW:
		err = r.bindRequest(&wr, q, w)
	case verbs.WRLocalInv:
		wr.InvKey = lookup(w, "window", r.windows, w.text("window", "", "")).key()
	case verbs.WRAtomicCmpSwap:
		wr.CompareAdd, wr.Swap = w.number("compare", "", 0), w.number("swap", "", 0)
		wr.SGList = []verbs.SGE{local.SGE(w.size("local", 0), 8)}
		r.remote(&wr, q, w)
	case verbs.WRAtomicFetchAdd:
		wr.CompareAdd = w.number("add", "", 1)
		wr.SGList = []verbs.SGE{local.SGE(w.size("local", 0), 8)}
		r.remote(&wr, q, w)
	default:
		off, n := w.size("local", 0), w.size("len", 0)
		if wr.Flags&verbs.SendInline != 0 {
			wr.InlineData = local.Bytes()[off : off+n]
		} else if n > 0 {
			wr.SGList = []verbs.SGE{local.SGE(off, n)}
		}
		err = r.message(&wr, q, w)
	}
	count := w.size("count", 1)
	if err == nil {
		err = w.done()
	}
	if err != nil {
		return err
	}
	list := make([]verbs.SendWR, count)
	for i := range list {
		list[i] = wr
		list[i].WRID += uint64(i)
	}
	if n, err := q.PostSend(list); err != nil {
		if count > 1 {
			err = fmt.Errorf("after %d requests: %w", n, err)
		}
		return refusal{err}
	}
	return nil
}

// message fills in what sends, writes and reads have.
func (r *runner) message(wr *verbs.SendWR, q *qp, w *words) error {
	switch wr.Opcode {
	case verbs.WRSendWithImm, verbs.WRRDMAWriteWithImm:
		wr.Imm = uint32(w.number("imm", "", 0))
	case verbs.WRSendWithInv:
		wr.InvKey = uint32(w.number("key", "", 0))
		if name := w.text("inv", "", ""); name != "" {
			wr.InvKey = lookup(w, "window", r.windows, name).key()
		}
	}
	switch wr.Opcode {
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm, verbs.WRRDMARead:
		r.remote(wr, q, w)
		return nil
	}
	if q.Type() != verbs.UD {
		return nil
	}
	to := lookup(w, "queue pair", r.qps, w.text("to", "", ""))
	if w.err != nil {
		return w.err
	}
	ah, err := q.dev.pd.CreateAH(to.dev.Address())
	if err != nil {
		return err
	}
	wr.AH, wr.RemoteQPN = ah, to.Num()
	wr.RemoteQKey = uint32(w.number("qkey", "", uint64(to.qkey)))
	return nil
}

// remote fills in address and key at the peer: its first region, a region or
// window by name, or a key by number.
func (r *runner) remote(wr *verbs.SendWR, q *qp, w *words) {
	wr.RemoteAddr = w.number("remote", "", 0)
	in := w.text("in", "", "")
	if in == "" && q.peer != nil {
		in = q.peer.dev.Name()
	}
	if mw := r.windows[in]; mw != nil {
		wr.RKey = mw.key()
	} else if mr := lookup(w, "region", r.regions, in); mr.MR != nil {
		wr.RKey = mr.RKey()
	}
	wr.RKey = uint32(w.number("key", "", uint64(wr.RKey)))
}

// key is the window's current one.
func (m *window) key() uint32 {
	if m.MW == nil { // there is none of that name
		return 0
	}
	return m.RKey()
}

// bindRequest fills in what a bind has, and names the new key after the window.
func (r *runner) bindRequest(wr *verbs.SendWR, q *qp, w *words) error {
	name := w.text("window", "", "")
	mw := lookup(w, "window", r.windows, name)
	mr := lookup(w, "region", r.regions, w.text("region", "", q.dev.Name()))
	if w.err != nil {
		return w.err
	}
	wr.Bind = verbs.BindMW{
		MW: mw.MW, RKey: verbs.IncRKey(mw.RKey()), MR: mr.MR,
		Addr: w.number("at", "", 0), Length: w.number("len", "", uint64(mr.Len())),
		Access: w.access("", verbs.AccessRemote) | verbs.AccessZeroBased,
	}
	r.trace.NameKey(mw.dev.Device, wr.Bind.RKey, name)
	return nil
}

// recv posts receives to a queue pair or a shared queue.
func (r *runner) recv(w *words) error {
	name := w.name()
	var to interface {
		PostRecv([]verbs.RecvWR) (int, error)
	}
	var d *device
	if s := r.srqs[name]; s != nil {
		to, d = s.SRQ, s.dev
	} else if q := r.qps[name]; q != nil {
		to, d = q.QP, q.dev
	} else {
		return fmt.Errorf("no queue pair or SRQ is called %s", name)
	}
	mr := lookup(w, "region", r.regions, w.text("in", "", d.Name()))
	if w.err != nil {
		return w.err
	}
	wr := verbs.RecvWR{WRID: w.number("wr", "", 0)}
	if list := w.text("sge", "", ""); list != "" {
		for _, e := range strings.Split(list, ",") {
			off, n, _ := strings.Cut(e, ":")
			o, err1 := strconv.Atoi(off)
			l, err2 := strconv.Atoi(n)
			if err1 != nil || err2 != nil {
				return fmt.Errorf("%q is no element; want OFFSET:BYTES", e)
			}
			wr.SGList = append(wr.SGList, mr.SGE(o, l))
		}
	} else if n := w.size("len", 0); n > 0 {
		wr.SGList = []verbs.SGE{mr.SGE(w.size("local", 0), n)}
	}
	count := w.size("count", 1)
	if err := w.done(); err != nil {
		return err
	}
	for range count {
		if _, err := to.PostRecv([]verbs.RecvWR{wr}); err != nil {
			return refusal{err}
		}
		wr.WRID++
	}
	return nil
}
