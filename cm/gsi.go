package cm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

// Buffer sizes of queue pair 1.
const (
	recvSlotSize      = wire.GRHLen + mad.Size
	sendSlots         = 128
	maxAddressHandles = 256
)

// gsi owns queue pair 1 (the general services interface) of a device, with its buffers. Only one
// goroutine may receive; sending requires Manager.mu.
type gsi struct {
	pd             verbs.PD
	sendCQ, recvCQ verbs.CQ
	qp             verbs.QP
	recvMR, sendMR verbs.MR
	freeSendSlots  []uint32 // send slots
	addressHandles map[netip.AddrPort]verbs.AH
	wcs            []verbs.WC
}

// openGSI creates queue pair 1 and posts its receives.
func openGSI(dev verbs.Device, receives int, psn uint32) (_ *gsi, err error) {
	g := &gsi{addressHandles: make(map[netip.AddrPort]verbs.AH), wcs: make([]verbs.WC, 64)}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if g.pd, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	if g.recvCQ, err = dev.CreateCQ(receives); err != nil {
		return nil, err
	}
	if g.sendCQ, err = dev.CreateCQ(sendSlots); err != nil {
		return nil, err
	}
	if g.recvMR, err = g.pd.RegMR(make([]byte, receives*recvSlotSize), verbs.AccessLocalWrite); err != nil {
		return nil, err
	}
	if g.sendMR, err = g.pd.RegMR(make([]byte, sendSlots*mad.Size), verbs.AccessLocalWrite); err != nil {
		return nil, err
	}
	if g.qp, err = g.pd.CreateQP(verbs.QPInitAttr{
		Type: verbs.GSI, SendCQ: g.sendCQ, RecvCQ: g.recvCQ,
		Cap: verbs.QPCap{MaxSendWR: sendSlots, MaxRecvWR: receives, MaxSendSGE: 1, MaxRecvSGE: 1},
	}); err != nil {
		return nil, err
	}
	if err = g.modifyToRTS(psn); err != nil {
		return nil, err
	}
	for i := range uint32(sendSlots) {
		g.freeSendSlots = append(g.freeSendSlots, i)
	}
	wrs := make([]verbs.RecvWR, receives)
	for i := range wrs {
		wrs[i] = g.recvWR(uint64(i))
	}
	_, err = g.qp.PostRecv(wrs)
	return g, err
}

// modifyToRTS moves the queue pair to StateRTS with starting PSN psn.
func (g *gsi) modifyToRTS(psn uint32) error {
	for _, step := range []struct {
		attr verbs.QPAttr
		mask verbs.QPAttrMask
	}{
		{verbs.QPAttr{State: verbs.StateInit, PortNum: 1, QKey: wire.QKeyGSI}, verbs.AttrPKeyIndex | verbs.AttrPort | verbs.AttrQKey},
		{verbs.QPAttr{State: verbs.StateRTR}, 0},
		{verbs.QPAttr{State: verbs.StateRTS, SQPSN: psn}, verbs.AttrSQPSN},
	} {
		if err := g.qp.Modify(step.attr, verbs.AttrState|step.mask); err != nil {
			return err
		}
	}
	return nil
}

func (g *gsi) recvWR(slot uint64) verbs.RecvWR {
	return verbs.RecvWR{WRID: slot, SGList: []verbs.SGE{g.recvMR.SGE(int(slot)*recvSlotSize, recvSlotSize)}}
}

// waitRecv blocks until datagrams arrive or ctx is done, and returns their completions, which
// are valid until the next call.
func (g *gsi) waitRecv(ctx context.Context) ([]verbs.WC, error) {
	n, err := g.recvCQ.PollWait(ctx, g.wcs)
	return g.wcs[:n], err
}

// parseDatagram returns the source address and the payload of a completed receive. ok is false
// if the completion failed or the source is not a queue pair 1.
func (g *gsi) parseDatagram(wc *verbs.WC) (from netip.Addr, b []byte, ok bool) {
	if wc.Status != verbs.WCSuccess || wc.SrcQPN != wire.QPNGSI || wc.ByteLen < wire.GRHLen {
		return from, nil, false
	}
	slot := g.recvMR.Bytes()[int(wc.WRID)*recvSlotSize:]
	from, _, _, ok = wire.ParseGRH(slot[:wire.GRHLen])
	return from, slot[wire.GRHLen:min(wc.ByteLen, recvSlotSize)], ok
}

// repostRecvs posts the receive buffers of wcs again.
func (g *gsi) repostRecvs(wcs []verbs.WC) error {
	var wrs [64]verbs.RecvWR
	n := 0
	for i := range wcs {
		wrs[n] = g.recvWR(wcs[i].WRID)
		n++
	}
	_, err := g.qp.PostRecv(wrs[:n])
	return err
}

// errNoSendBuffer reports that all send buffers are in flight.
var errNoSendBuffer = errors.New("no free send buffer")

// send posts a datagram. It returns errNoSendBuffer if all send buffers are in flight.
func (g *gsi) send(to netip.AddrPort, b *[mad.Size]byte) error {
	if len(g.freeSendSlots) == 0 {
		g.reapSends()
	}
	if len(g.freeSendSlots) == 0 {
		return errNoSendBuffer
	}
	ah, err := g.addressHandle(to)
	if err != nil {
		return err
	}
	slot := g.freeSendSlots[len(g.freeSendSlots)-1]
	off := int(slot) * mad.Size
	copy(g.sendMR.Bytes()[off:], b[:])
	_, err = g.qp.PostSend([]verbs.SendWR{{
		WRID: uint64(slot), Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{g.sendMR.SGE(off, mad.Size)},
		AH: ah, RemoteQPN: wire.QPNGSI, RemoteQKey: wire.QKeyGSI,
	}})
	if err == nil {
		g.freeSendSlots = g.freeSendSlots[:len(g.freeSendSlots)-1]
	}
	return err
}

// reapSends polls the send CQ and frees the completed send buffers.
func (g *gsi) reapSends() {
	var wcs [sendSlots]verbs.WC
	n, _ := g.sendCQ.Poll(wcs[:]) // a closed queue returns none
	for i := range n {
		g.freeSendSlots = append(g.freeSendSlots, uint32(wcs[i].WRID))
	}
}

// addressHandle returns a cached address handle for a peer's adapter, or creates one.
func (g *gsi) addressHandle(to netip.AddrPort) (verbs.AH, error) {
	if ah := g.addressHandles[to]; ah != nil {
		return ah, nil
	}
	if len(g.addressHandles) >= maxAddressHandles {
		for k, ah := range g.addressHandles {
			_ = ah.Close() // created here and destroyed once
			delete(g.addressHandles, k)
		}
	}
	ah, err := g.pd.CreateAH(verbs.AHAttr{DGID: verbs.GIDFromAddr(to.Addr()), UDPPort: to.Port(), PortNum: 1})
	if err != nil {
		return nil, err
	}
	g.addressHandles[to] = ah
	return ah, nil
}

// close destroys all resources and returns their joined errors.
func (g *gsi) close() error {
	var errs []error
	if g.qp != nil {
		errs = append(errs, g.qp.Close())
	}
	for _, ah := range g.addressHandles {
		errs = append(errs, ah.Close())
	}
	for _, mr := range []verbs.MR{g.recvMR, g.sendMR} {
		if mr != nil {
			errs = append(errs, mr.Close())
		}
	}
	for _, cq := range []verbs.CQ{g.sendCQ, g.recvCQ} {
		if cq != nil {
			errs = append(errs, cq.Close())
		}
	}
	if g.pd != nil {
		errs = append(errs, g.pd.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close queue pair 1: %w", err)
	}
	return nil
}
