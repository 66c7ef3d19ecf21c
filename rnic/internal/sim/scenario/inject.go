package scenario

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// injectPacket sends a handmade packet with the address of an adapter.
func (r *runner) injectPacket(w *arguments) error {
	d, q, name := findNext(w, "device", r.devices), r.nextQP(w), w.nextName()
	info, err := opcodeByName(name)
	if err != nil {
		return err
	}
	if w.err != nil {
		return w.err
	}
	n := w.sizeOption("len", 0)
	pad := w.sizeOption("pad", wire.PadFor(n))
	buf := make([]byte, info.HeaderLen+n+pad+wire.ICRCLen)
	bth := wire.BTH{
		Opcode: info.Opcode, Pad: uint8(pad), TVer: uint8(w.numberOption("tver", "", 0)), PKey: uint16(w.numberOption("pkey", "", wire.DefaultPKey)),
		DestQPN: uint32(w.numberOption("qpn", "", uint64(q.Num()))), PSN: wire.PSN(w.numberOption("psn", "", 0)),
		AckReq: w.takeFlag("ackreq"), SE: w.takeFlag("solicited"), BECN: info.Operation == wire.OpCNP,
	}
	bth.Put(buf)
	at := wire.BTHLen
	if info.DETH {
		wire.DETH{QKey: uint32(w.numberOption("qkey", "", uint64(q.qkey))), SrcQPN: uint32(w.numberOption("src", "", 0))}.Put(buf[at:])
		at += wire.DETHLen
	}
	if info.RETH || info.AtomicETH {
		r.putAccessHeader(w, info, q, buf[at:])
	}
	if info.AETH {
		wire.AETH{Syndrome: wire.Syndrome(w.numberOption("syndrome", "", 0x1f)), MSN: uint32(w.numberOption("msn", "", 0))}.Put(buf[at:])
		at += wire.AETHLen
	}
	if info.AtomicAckETH {
		wire.AtomicAckETH{Orig: w.numberOption("was", "", 0)}.Put(buf[at:])
	}
	if info.SackETH {
		wire.SackETH{Done: w.numberOption("done", "", 0)}.Put(buf[at:])
	}
	if info.Imm {
		binary.BigEndian.PutUint32(buf[info.HeaderLen-wire.ImmLen:], uint32(w.numberOption("imm", "", 0)))
	}
	if info.IETH {
		wire.IETH{RKey: uint32(w.numberOption("key", "", 0))}.Put(buf[info.HeaderLen-wire.IETHLen:])
	}
	if err := w.finish(); err != nil {
		return err
	}
	b := link.NewBatch(len(buf))
	b.Append(&wire.Path{Dst: q.dev.Addr()}, buf)
	return d.Port().WriteBatch(b)
}

// putAccessHeader writes RETH or AtomicETH.
func (r *runner) putAccessHeader(w *arguments, info *wire.Info, q *qp, buf []byte) {
	key := uint32(w.numberOption("key", "", uint64(r.regions[q.dev.Name()].RKey())))
	va := w.numberOption("remote", "", 0)
	if info.FETH {
		wire.FETH{Placement: uint8(w.numberOption("placement", "", 1)), Selectivity: uint8(w.numberOption("selectivity", "", 0))}.Put(buf)
		buf = buf[wire.FETHLen:]
	}
	switch {
	case info.RETH:
		wire.RETH{VA: va, RKey: key, Length: uint32(w.sizeOption("size", w.sizeOption("len", 0)))}.Put(buf)
	case info.Operation == wire.OpCmpSwap:
		wire.AtomicETH{VA: va, RKey: key, SwapAdd: w.numberOption("swap", "", 0), Compare: w.numberOption("compare", "", 0)}.Put(buf)
	default:
		wire.AtomicETH{VA: va, RKey: key, SwapAdd: w.numberOption("add", "", 1)}.Put(buf)
	}
}

// opcodeByName finds an opcode by name.
func opcodeByName(name string) (*wire.Info, error) {
	for code := range 256 {
		if i := wire.Opcode(code).Info(); i.Valid && i.Name == name {
			return i, nil
		}
	}
	return nil, fmt.Errorf("unknown opcode %s", name)
}
