package rdma

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/verbs"
)

// ringsInRow is how often packets in memory alone are enough for Poll: a look at the
// adapter is a system call, which takes as long as all the rest.
const ringsInRow = 8

// Poll implements fabric.Fabric.
func (f *Fabric) Poll() (some bool) {
	f.Flush()
	if f.pollRings() {
		if f.inRow++; f.inRow < ringsInRow && f.ready == 0 {
			return true
		}
		some = true
	}
	f.inRow = 0
	for {
		n := f.ready
		f.ready = 0
		if n == 0 {
			var err error
			if n, err = f.cq.Poll(f.wcs[:]); n == 0 {
				if err != nil {
					f.fail(err)
				}
				break
			}
		}
		some = true
		f.Complete(f.wcs[:n])
		if n < len(f.wcs) {
			break
		}
	}
	return some
}

// Block implements fabric.Fabric.
func (f *Fabric) Block(ctx context.Context) error {
	if rings := f.rings.Load(); rings != nil && len(*rings) > 0 {
		return f.look(ctx)
	}
	n, err := f.cq.PollWait(ctx, f.wcs[:])
	f.ready = n
	if n > 0 || errors.Is(err, verbs.ErrCQOverrun) {
		return nil
	}
	return err
}

// Complete handles completions. Who polls Options.Queue calls it, with the engine's
// lock; Poll and Block are not called then.
func (f *Fabric) Complete(wcs []verbs.WC) {
	for i := range wcs {
		f.complete(&wcs[i])
	}
	f.refill()
}

// complete handles a completion.
func (f *Fabric) complete(wc *verbs.WC) {
	l := f.byQP[wc.QPN]
	kind, index, ordinal := unpack(wc.WRID)
	if kind == wrRecv {
		switch {
		case wc.Status != verbs.WCSuccess || l == nil:
		case wc.Opcode == verbs.WCRecvRDMAWithImm:
			f.notified(l, wc.Imm)
		default:
			f.arrived(l, f.recvs.buf(index)[:wc.ByteLen])
		}
		f.repost = append(f.repost, f.recvs.wr(index))
		return
	}
	why := wc.Err()
	if why != nil && l != nil {
		why = fabric.NewLoss(l.rank, why)
	}
	switch kind {
	case wrBuffer:
		f.sends.put(index)
	case wrMove:
		f.part(index, why) // unless fail has ended it
	case wrStripe:
		f.striped(wc, index)
	}
	if l == nil {
		return
	}
	if wc.Status != verbs.WCSuccess {
		f.lose(l, why)
		return
	}
	l.completed = ordinal + 1
	if l.waiting {
		f.resume(l)
	}
}

// arrived handles what a receive took: a packet, or several together.
func (f *Fabric) arrived(l *link, b []byte) {
	for first := true; len(b) > 0 && !l.down; first = false {
		if len(b) < envelope.Size {
			f.lose(l, fmt.Errorf("%w: %d bytes", envelope.ErrMalformed, len(b)))
			return
		}
		n := envelope.Size + int(binary.LittleEndian.Uint32(b[28:])) // Header.Bytes
		if n < 0 || n > len(b) {
			f.lose(l, fmt.Errorf("%w: a packet of %d bytes in %d", envelope.ErrMalformed, n, len(b)))
			return
		}
		f.handle(l, b[:envelope.Size], b[envelope.Size:n], first)
		b = b[min(len(b), padded(n)):]
	}
	f.owe(l)
}

// notified handles a notice, whose receive gave nothing but itself.
func (f *Fabric) notified(l *link, notice uint32) {
	if l.down {
		return
	}
	l.owed++
	if err := f.host.Core().HandleNotify(l.rank, notice); err != nil {
		f.lose(l, err)
		return
	}
	f.owe(l)
}

// handle handles a packet. The first of several brings credits.
func (f *Fabric) handle(l *link, header, payload []byte, first bool) {
	h := &f.header
	if err := h.Unmarshal(header); err != nil {
		f.lose(l, err)
		return
	}
	if int(h.Source) != l.rank || int(h.Bytes) != len(payload) {
		f.lose(l, fmt.Errorf("%w: payload of %d bytes, it says %d, of rank %d", envelope.ErrMalformed, len(payload), h.Bytes, h.Source))
		return
	}
	if int(h.Credits)+int(l.credits) > f.o.Credits {
		f.lose(l, fmt.Errorf("%w: %d credits more than were used", envelope.ErrMalformed, int(h.Credits)+int(l.credits)-f.o.Credits))
		return
	}
	l.credits += h.Credits
	if first && h.Kind != envelope.Credit { // which has not used any itself
		l.owed++
	}
	switch h.Kind {
	case envelope.Hello:
		f.greeted(l)
	case envelope.Bye:
		l.bye = true
	}
	if err := f.host.Core().HandlePacket(l.rank, h, payload); err != nil {
		f.lose(l, err)
		return
	}
	if l.waiting && h.Credits > 0 {
		f.resume(l)
	}
}

// owe gives credits when there are many to give.
func (f *Fabric) owe(l *link) {
	if int(l.owed) >= f.o.Credits/2 {
		f.giveCredits(l)
	}
}

// giveCredits tells a rank how many of its packets were dealt with, if there
// is nothing else to tell it.
func (f *Fabric) giveCredits(l *link) {
	if !l.up || l.room() == 0 {
		return // later
	}
	if l.batch.n > 0 && f.flush(l) {
		return // they went with it
	}
	h := envelope.Header{Kind: envelope.Credit, Source: uint32(f.rank), Credits: l.owed}
	h.MarshalTo(f.frame[:])
	f.wr[0] = verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendInline | verbs.SendSignaled, InlineData: f.frame[:envelope.Size], WRID: l.wrid(wrInline, 0)}
	if f.post(l) {
		l.owed = 0
		f.stats.creditPackets++
	}
}

// refillAfter is how many receives are posted together, a quarter of those that there
// are at most.
const refillAfter = 16

// refill posts the receives that were used, and lets those go on who waited
// for a send buffer.
func (f *Fabric) refill() {
	if len(f.repost) >= min(refillAfter, max(1, f.recvs.count/4)) {
		if _, err := f.srq.PostRecv(f.repost); err != nil {
			f.fail(err)
		}
		f.repost = f.repost[:0]
	}
	for len(f.short) > 0 && f.sends.left() > 0 {
		rank := f.short[0]
		f.short = f.short[:copy(f.short, f.short[1:])]
		f.links[rank].short = false
		f.host.Core().Resume(rank)
	}
}
