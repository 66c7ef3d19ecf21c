package rdma

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/fabric"
	"github.com/softrnic/softrnic/mpi/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// inlineMax is the longest packet that travels in its work request.
const inlineMax = 256

// sendQueue is the depth of a connection's send queue.
const sendQueue = 128

// Fabric carries packets by SEND over reliable connections, with one queue of
// receives for all of them (SR of the iWARP paper, section 3), and memory by
// RDMA.
type Fabric struct {
	host fabric.Host
	book fabric.Book
	o    Options
	rank int

	dev verbs.Device
	pd  verbs.PD
	cq  verbs.CQ
	srq verbs.SRQ
	cm  *cm.Manager

	links []*link          // by rank
	byQP  map[uint32]*link // by queue pair number
	rails map[uint32]*rail // by queue pair number
	recvs slabs
	sends pool
	moves moves
	cache cache

	queues []*Queue

	recents []*link     // those that were sent to since the last Flush
	batched []*link     // those that packets wait for
	timer   *time.Timer // for their sake

	rings atomic.Pointer[[]*ring] // of the fast path

	wcs      [64]verbs.WC
	ready    int // completions of wcs that Block has found
	repost   []verbs.RecvWR
	striping []*rail // of the message that is moved
	frame    [inlineMax]byte
	header   envelope.Header // of the packet that is handled
	wr       [1]verbs.SendWR
	sge      [1]verbs.SGE
	short    []int // ranks whose packets wait for a send buffer

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	closed bool
	stats  stats
}

var _ fabric.Fabric = (*Fabric)(nil)

// New makes the fabric of a rank on a device, which it does not close. The
// addresses are in the book once all ranks have called Book.Fence.
func New(dev verbs.Device, host fabric.Host, book fabric.Book, o Options) (_ *Fabric, err error) {
	o.fill()
	f := &Fabric{host: host, book: book, o: o, rank: book.Rank(), dev: dev,
		links: make([]*link, book.Size()), byQP: map[uint32]*link{}, rails: map[uint32]*rail{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.timer = time.AfterFunc(time.Hour, f.late)
	f.timer.Stop()
	defer func() {
		if err != nil {
			f.cancel()
		}
	}()
	if f.pd, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	if o.Queue != nil {
		f.cq = o.Queue.CQ
		err = f.cq.Resize(f.depth(o.Receives))
	} else {
		f.cq, err = dev.CreateCQ(f.depth(o.Receives))
	}
	if err != nil {
		return nil, err
	}
	if f.srq, err = f.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: maxReceives, MaxSGE: 1}); err != nil {
		return nil, err
	}
	size := envelope.Size + o.Eager
	f.recvs.init(f.pd, f.srq, size)
	if err := f.recvs.grow(o.Receives); err != nil {
		return nil, err
	}
	if err := f.limit(); err != nil {
		return nil, err
	}
	if err := f.sends.init(f.pd, o.Sends, size); err != nil {
		return nil, err
	}
	f.cache.pd = f.pd
	if err := f.listen(); err != nil {
		return nil, err
	}
	f.work.Go(f.watch)
	return f, nil
}

// watch adds receive buffers when few are left: by the limit of the shared
// queue, whose event comes whether the program calls or not.
func (f *Fabric) watch() {
	for {
		ev, err := f.dev.GetAsyncEvent(f.ctx)
		if err != nil {
			return
		}
		if ev.Type != verbs.EventSRQLimitReached {
			continue
		}
		f.host.Do(func(*protocol.Core) {
			if err := f.moreReceives(); err != nil {
				f.fail(err)
			}
		})
	}
}

// moreReceives adds as many buffers as there were at first, unless there is
// one for every packet that could come.
func (f *Fabric) moreReceives() error {
	if f.closed || f.recvs.count >= len(f.byQP)*f.o.Credits || f.recvs.count >= maxReceives {
		return nil
	}
	if err := f.cq.Resize(f.depth(f.o.Receives)); err != nil {
		return err
	}
	if err := f.recvs.grow(f.o.Receives); err != nil {
		return err
	}
	return f.limit()
}

// limit arms the event.
func (f *Fabric) limit() error {
	return f.srq.Modify(verbs.SRQAttr{Limit: f.o.Receives / 4}, verbs.SRQLimit)
}

// depth is how many completions there can be, with more receives than now.
func (f *Fabric) depth(more int) int {
	others := 64
	if f.o.Queue != nil {
		others += f.o.Queue.Others
	}
	for _, q := range f.queues {
		others += (len(q.qps) + 1) * queueDepth
	}
	return others + f.recvs.count + more + (len(f.byQP)+1)*sendQueue + len(f.rails)*railQueue
}

// Limits implements protocol.Net.
func (f *Fabric) Limits(int) protocol.Limits {
	return protocol.Limits{Eager: f.o.Eager, Rdma: f.o.Rendezvous}
}

// Send implements protocol.Net.
func (f *Fabric) Send(rank int, h *envelope.Header, payload []byte) bool {
	l := f.links[rank]
	if l == nil || !l.up {
		f.connect(rank)
		return false
	}
	if l.credits == 0 || l.room() == 0 {
		l.waiting = true
		return false
	}
	if f.pack(l, h, payload) {
		return true
	}
	if l.batch.n > 0 && !f.flush(l) || l.credits == 0 || l.room() == 0 {
		l.waiting = true
		return false
	}
	n := envelope.Size + len(payload)
	h.Credits = l.owed
	wr := &f.wr[0]
	fast := n <= int(l.out.size) && h.Kind != envelope.Hello
	if n <= inlineMax {
		put(f.frame[:n], h, payload, fast)
		*wr = verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: f.frame[:n], WRID: l.wrid(wrInline, 0)}
		if l.posted%signalEvery == 0 {
			wr.Flags |= verbs.SendSignaled
		}
	} else {
		s := f.sends.take()
		if s < 0 {
			f.wait(l)
			return false
		}
		put(f.sends.buf(s)[:n], h, payload, fast)
		f.sge[0] = f.sends.sge(s, n)
		*wr = verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: f.sge[:], WRID: l.wrid(wrBuffer, s)}
	}
	if fast {
		f.place(l, n)
	}
	if !f.post(l) {
		return true // lost: the core hears of it by the completion
	}
	l.owed = 0
	l.credits--
	f.stats.packets++
	f.recent(l)
	return true
}

// recent counts what leaves until the next Flush.
func (f *Fabric) recent(l *link) {
	if l.recent++; l.recent == 1 {
		f.recents = append(f.recents, l)
	}
}

// put writes a packet to b: header and payload, or the other way round where
// the end is what counts.
func put(b []byte, h *envelope.Header, payload []byte, headerLast bool) {
	if headerLast {
		h.Put(b[copy(b, payload):])
		return
	}
	h.Put(b)
	copy(b[envelope.Size:], payload)
}

// post posts f.wr.
func (f *Fabric) post(l *link) bool {
	f.postList(l)
	if _, err := l.qp.PostSend(f.wr[:]); err != nil {
		f.lose(l, err)
		return false
	}
	l.posted++
	return true
}

// wait makes a rank's packets wait for a send buffer.
func (f *Fabric) wait(l *link) {
	if !l.short {
		l.short = true
		f.short = append(f.short, l.rank)
	}
}

// Expose implements protocol.Net.
func (f *Fabric) Expose(_ int, b []byte, _ bool) (envelope.Key, protocol.Exposed, error) {
	mr, err := f.cache.get(b)
	if err != nil {
		return envelope.Key{}, nil, err
	}
	return envelope.Key{Addr: mr.sge(b).Addr, RKey: mr.mr.RKey()}, mr, nil
}

// Hide implements protocol.Net.
func (f *Fabric) Hide(e protocol.Exposed) { f.cache.put(e.(*region)) }

// Poll implements fabric.Fabric.
func (f *Fabric) Poll() (some bool) {
	f.Flush()
	some = f.pollRings()
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
	switch kind {
	case wrBuffer:
		f.sends.put(index)
	case wrMove:
		f.part(index, wc.Err()) // unless fail has ended it
	case wrStripe:
		f.striped(wc, index)
	}
	if l == nil {
		return
	}
	if wc.Status != verbs.WCSuccess {
		f.lose(l, wc.Err())
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
	if err := f.host.Core().Notified(l.rank, notice); err != nil {
		f.lose(l, err)
		return
	}
	f.owe(l)
}

// handle handles a packet. The first of several brings credits.
func (f *Fabric) handle(l *link, header, payload []byte, first bool) {
	h := &f.header
	if err := h.Get(header); err != nil {
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
	if err := f.host.Core().Packet(l.rank, h, payload); err != nil {
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
	h.Put(f.frame[:])
	f.wr[0] = verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendInline | verbs.SendSignaled, InlineData: f.frame[:envelope.Size], WRID: l.wrid(wrInline, 0)}
	if f.post(l) {
		l.owed = 0
		f.stats.creditPackets++
	}
}

// refill posts the receives that were used, and lets those go on who waited
// for a send buffer.
func (f *Fabric) refill() {
	if len(f.repost) > 0 {
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

// lose ends a connection that has failed.
func (f *Fabric) lose(l *link, why error) {
	if l.down {
		return
	}
	l.down, l.up, l.why = true, false, why
	_ = l.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) // the rank reads and writes nothing any more
	l.tear()
	f.withdraw(l)
	f.host.Core().Lost(l.rank, why)
	f.postList(l)
}

// Cut implements fabric.Fabric.
func (f *Fabric) Cut(rank int, why error) {
	if l := f.links[rank]; l != nil && l.qp != nil {
		f.lose(l, why)
		return
	}
	f.links[rank] = &link{rank: rank, down: true, why: why} // who dials gives up
	f.host.Core().Lost(rank, why)
}

// Fail ends them all: nothing comes out of Options.Queue any more.
func (f *Fabric) Fail(why error) { f.fail(why) }

// fail ends them all.
func (f *Fabric) fail(why error) {
	for rank, l := range f.links {
		switch {
		case rank == f.rank:
		case l != nil && l.qp != nil:
			f.lose(l, why)
		default:
			f.host.Core().Lost(rank, why)
		}
	}
	for i, m := range f.moves.list { // whose completions may be lost; nothing is moved any more
		if m.live {
			f.moved(i, why)
		}
	}
}

// Stats implements fabric.Fabric.
func (f *Fabric) Stats() map[string]uint64 {
	connected := uint64(0)
	for _, l := range f.links {
		if l != nil && l.up {
			connected++
		}
	}
	return map[string]uint64{"packets": f.stats.packets, "coalesced": f.stats.coalesced, "credit_packets": f.stats.creditPackets, "connections": connected,
		"registrations": f.cache.registered, "registration_hits": f.cache.hits, "receive_buffers": uint64(f.recvs.count), "rails": uint64(len(f.rails)), "stripes": f.stats.stripes}
}

type stats struct{ packets, coalesced, creditPackets, stripes uint64 }
