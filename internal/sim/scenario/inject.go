package scenario

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// inject sends a packet that no adapter made.
func (r *runner) inject(w *words) error {
	d, q, name := find(w, "device", r.devices), r.qp(w), w.name()
	info, err := opcode(name)
	if err != nil {
		return err
	}
	if w.err != nil {
		return w.err
	}
	n := w.size("len", 0)
	pad := w.size("pad", wire.PadFor(n))
	buf := make([]byte, info.HeaderLen+n+pad+wire.ICRCLen)
	bth := wire.BTH{
		Opcode: info.Opcode, Pad: uint8(pad), TVer: uint8(w.number("tver", "", 0)), PKey: uint16(w.number("pkey", "", wire.DefaultPKey)),
		DestQPN: uint32(w.number("qpn", "", uint64(q.Num()))), PSN: wire.PSN(w.number("psn", "", 0)),
		AckReq: w.flag("ackreq"), SE: w.flag("solicited"), BECN: info.Operation == wire.OpCNP,
	}
	bth.Put(buf)
	at := wire.BTHLen
	if info.DETH {
		wire.DETH{QKey: uint32(w.number("qkey", "", uint64(q.qkey))), SrcQPN: uint32(w.number("src", "", 0))}.Put(buf[at:])
		at += wire.DETHLen
	}
	if info.RETH || info.AtomicETH {
		r.access(w, info, q, buf[at:])
	}
	if info.AETH {
		wire.AETH{Syndrome: wire.Syndrome(w.number("syndrome", "", 0x1f)), MSN: uint32(w.number("msn", "", 0))}.Put(buf[at:])
		at += wire.AETHLen
	}
	if info.AtomicAckETH {
		wire.AtomicAckETH{Orig: w.number("was", "", 0)}.Put(buf[at:])
	}
	if info.SackETH {
		wire.SackETH{Done: w.number("done", "", 0)}.Put(buf[at:])
	}
	if info.Imm {
		wire.ImmDt(w.number("imm", "", 0)).Put(buf[info.HeaderLen-wire.ImmLen:])
	}
	if info.IETH {
		wire.IETH{RKey: uint32(w.number("key", "", 0))}.Put(buf[info.HeaderLen-wire.IETHLen:])
	}
	if err := w.done(); err != nil {
		return err
	}
	b := link.NewBatch(len(buf))
	b.Append(&wire.Path{Dst: q.dev.Addr()}, buf)
	return d.Port().WriteBatch(b)
}

// access writes RETH or AtomicETH.
func (r *runner) access(w *words, info *wire.Info, q *qp, buf []byte) {
	key := uint32(w.number("key", "", uint64(r.regions[q.dev.Name()].RKey())))
	va := w.number("remote", "", 0)
	switch {
	case info.RETH:
		wire.RETH{VA: va, RKey: key, Length: uint32(w.size("size", w.size("len", 0)))}.Put(buf)
	case info.Operation == wire.OpCmpSwap:
		wire.AtomicETH{VA: va, RKey: key, SwapAdd: w.number("swap", "", 0), Compare: w.number("compare", "", 0)}.Put(buf)
	default:
		wire.AtomicETH{VA: va, RKey: key, SwapAdd: w.number("add", "", 1)}.Put(buf)
	}
}

// opcode finds an opcode by name.
func opcode(name string) (*wire.Info, error) {
	for code := range 256 {
		if i := wire.Opcode(code).Info(); i.Valid && i.Name == name {
			return i, nil
		}
	}
	return nil, fmt.Errorf("no opcode is called %s", name)
}
