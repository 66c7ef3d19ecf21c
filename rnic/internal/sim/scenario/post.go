package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/verbs"
)

// postSend posts a request, or a list of equal ones.
func (r *runner) postSend(op verbs.WROpcode, w *arguments) error {
	q := r.nextQP(w)
	if w.err != nil {
		return w.err
	}
	wr := verbs.SendWR{WRID: w.numberOption("wr", "", 0), Opcode: op, Flags: verbs.SendSignaled}
	for flag, f := range map[string]verbs.SendFlags{"fence": verbs.SendFence, "solicited": verbs.SendSolicited, "inline": verbs.SendInline} {
		if w.takeFlag(flag) {
			wr.Flags |= f
		}
	}
	if w.takeFlag("unsignaled") {
		wr.Flags &^= verbs.SendSignaled
	}
	local := r.regions[q.dev.Name()]
	var err error
	switch op {
	case verbs.WRBindMW:
		err = r.fillBind(&wr, q, w)
	case verbs.WRLocalInv:
		wr.InvKey = lookup(w, "window", r.windows, w.option("window", "", "")).rkey()
	case verbs.WRAtomicCmpSwap:
		wr.CompareAdd, wr.Swap = w.numberOption("compare", "", 0), w.numberOption("swap", "", 0)
		wr.SGList = []verbs.SGE{local.SGE(w.sizeOption("local", 0), 8)}
		r.fillRemote(&wr, q, w)
	case verbs.WRAtomicFetchAdd:
		wr.CompareAdd = w.numberOption("add", "", 1)
		wr.SGList = []verbs.SGE{local.SGE(w.sizeOption("local", 0), 8)}
		r.fillRemote(&wr, q, w)
	case verbs.WRAtomicWrite:
		wr.SGList = []verbs.SGE{local.SGE(w.sizeOption("local", 0), 8)}
		r.fillRemote(&wr, q, w)
	case verbs.WRFlush:
		wr.Flush = verbs.Flush{Placement: verbs.FlushPlacement(w.numberOption("placement", "", 1)),
			Selectivity: verbs.FlushSelectivity(w.numberOption("selectivity", "", 0)), Length: uint32(w.sizeOption("len", 0))}
		r.fillRemote(&wr, q, w)
	default:
		off, n := w.sizeOption("local", 0), w.sizeOption("len", 0)
		if wr.Flags&verbs.SendInline != 0 {
			wr.InlineData = local.Bytes()[off : off+n]
		} else if n > 0 {
			wr.SGList = []verbs.SGE{local.SGE(off, n)}
		}
		err = r.fillMessage(&wr, q, w)
	}
	count := w.sizeOption("count", 1)
	if err == nil {
		err = w.finish()
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
		return adapterError{err}
	}
	return nil
}

// fillMessage fills in the fields of sends, writes and reads.
func (r *runner) fillMessage(wr *verbs.SendWR, q *qp, w *arguments) error {
	switch wr.Opcode {
	case verbs.WRSendWithImm, verbs.WRRDMAWriteWithImm:
		wr.Imm = uint32(w.numberOption("imm", "", 0))
	case verbs.WRSendWithInv:
		wr.InvKey = uint32(w.numberOption("key", "", 0))
		if name := w.option("inv", "", ""); name != "" {
			wr.InvKey = lookup(w, "window", r.windows, name).rkey()
		}
	}
	switch wr.Opcode {
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm, verbs.WRRDMARead:
		r.fillRemote(wr, q, w)
		return nil
	}
	if q.Type() != verbs.UD {
		return nil
	}
	to := lookup(w, "queue pair", r.qps, w.option("to", "", ""))
	if w.err != nil {
		return w.err
	}
	ah, err := q.dev.pd.CreateAH(to.dev.AddressVector())
	if err != nil {
		return err
	}
	wr.AH, wr.RemoteQPN = ah, to.Num()
	wr.RemoteQKey = uint32(w.numberOption("qkey", "", uint64(to.qkey)))
	return nil
}

// fillRemote fills in address and key at the peer: its first region, a region or
// window by name, or a key by number.
func (r *runner) fillRemote(wr *verbs.SendWR, q *qp, w *arguments) {
	wr.RemoteAddr = w.numberOption("remote", "", 0)
	in := w.option("in", "", "")
	if in == "" && q.peer != nil {
		in = q.peer.dev.Name()
	}
	if mw := r.windows[in]; mw != nil {
		wr.RKey = mw.rkey()
	} else if mr := lookup(w, "region", r.regions, in); mr.MR != nil {
		wr.RKey = mr.RKey()
	}
	wr.RKey = uint32(w.numberOption("key", "", uint64(wr.RKey)))
}

// rkey returns the window's current key.
func (m *window) rkey() uint32 {
	if m.MW == nil { // no window of that name
		return 0
	}
	return m.RKey()
}

// fillBind fills in the fields of a bind, and names the new key after the
// window.
func (r *runner) fillBind(wr *verbs.SendWR, q *qp, w *arguments) error {
	name := w.option("window", "", "")
	mw := lookup(w, "window", r.windows, name)
	mr := lookup(w, "region", r.regions, w.option("region", "", q.dev.Name()))
	if w.err != nil {
		return w.err
	}
	wr.Bind = verbs.BindMW{
		MW: mw.MW, RKey: verbs.IncRKey(mw.RKey()), MR: mr.MR,
		Addr: w.numberOption("at", "", 0), Length: w.numberOption("len", "", uint64(mr.Len())),
		Access: w.accessOption("", verbs.AccessRemote) | verbs.AccessZeroBased,
	}
	r.trace.NameKey(mw.dev.Device, wr.Bind.RKey, name)
	return nil
}

// postRecv posts receives to a queue pair or a shared queue.
func (r *runner) postRecv(w *arguments) error {
	name := w.nextName()
	var to interface {
		PostRecv([]verbs.RecvWR) (int, error)
	}
	var d *device
	if s := r.srqs[name]; s != nil {
		to, d = s.SRQ, s.dev
	} else if q := r.qps[name]; q != nil {
		to, d = q.QP, q.dev
	} else {
		return fmt.Errorf("unknown queue pair or SRQ %s", name)
	}
	mr := lookup(w, "region", r.regions, w.option("in", "", d.Name()))
	if w.err != nil {
		return w.err
	}
	wr := verbs.RecvWR{WRID: w.numberOption("wr", "", 0)}
	if list := w.option("sge", "", ""); list != "" {
		for _, e := range strings.Split(list, ",") {
			off, n, _ := strings.Cut(e, ":")
			o, err1 := strconv.Atoi(off)
			l, err2 := strconv.Atoi(n)
			if err1 != nil || err2 != nil {
				return fmt.Errorf("%q: want an element OFFSET:BYTES", e)
			}
			wr.SGList = append(wr.SGList, mr.SGE(o, l))
		}
	} else if n := w.sizeOption("len", 0); n > 0 {
		wr.SGList = []verbs.SGE{mr.SGE(w.sizeOption("local", 0), n)}
	}
	count := w.sizeOption("count", 1)
	if err := w.finish(); err != nil {
		return err
	}
	for range count {
		if _, err := to.PostRecv([]verbs.RecvWR{wr}); err != nil {
			return adapterError{err}
		}
		wr.WRID++
	}
	return nil
}
