package ud

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/fabric"
	"github.com/softrnic/softrnic/mpi/protocol"
	"github.com/softrnic/softrnic/reliability/nack"
	"github.com/softrnic/softrnic/verbs"
)

// Fabric carries packets by datagrams of one UD queue pair.
type Fabric struct {
	host  fabric.Host
	book  fabric.Book
	o     Options
	rank  int
	epoch uint32
	mtu   int // bytes of our longest datagram

	dev   verbs.Device
	pd    verbs.PD
	cq    verbs.CQ
	qp    verbs.QP
	recvs buffers
	slots verbs.MR // memory of core
	core  *nack.Core
	start time.Time

	links []link // by rank
	ahs   map[netip.AddrPort]verbs.AH

	// What leaves.
	posted, completed uint32 // work requests
	kept              int    // messages that wait to leave together
	recent            bool   // something has been sent since the last Flush
	inside            bool   // a look at what has come; what that sends leaves at its end
	packets           [burst]nack.Packet
	wrs               [burst]verbs.SendWR
	sges              [burst]verbs.SGE
	frame             [envelope.Size]byte

	// What comes.
	wcs     [64]verbs.WC
	ready   int // completions of wcs that Block has found
	blocked atomic.Bool
	from    int // rank of the packet that is handled
	deliver func(message []byte)
	repost  []verbs.RecvWR

	timer *time.Timer
	armed nack.Time    // when it rings, 0 if it does not
	mine  [64]verbs.WC // the timer's

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	closed bool
	stats  struct{ strangers, refused uint64 }
}

// New makes the fabric of a rank on a device, which it does not close. The
// addresses are in the book once all ranks have called Book.Fence.
func New(dev verbs.Device, host fabric.Host, book fabric.Book, o Options) (_ *Fabric, err error) {
	port, err := dev.QueryPort(1)
	if err != nil {
		return nil, err
	}
	mtu := port.ActiveMTU.Bytes()
	o.fill(mtu)
	now := time.Now()
	f := &Fabric{host: host, book: book, o: o, rank: book.Rank(), mtu: mtu, dev: dev, start: now,
		epoch: max(1, uint32(now.Unix())), links: make([]link, book.Size()), ahs: map[netip.AddrPort]verbs.AH{}}
	f.deliver = f.message
	f.ctx, f.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			f.cancel()
			_ = f.destroy()
		}
	}()
	memory := make([]byte, nack.Memory(o.Packets, mtu))
	f.core = nack.New(nack.Options{Self: uint32(f.rank), Peers: book.Size(), Epoch: f.epoch, MTU: mtu, MaxMessage: envelope.Size + o.Eager,
		Slots: o.Packets, Memory: memory, GiveUp: int64(o.GiveUp)})
	if f.pd, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	if f.slots, err = f.pd.RegMR(memory, 0); err != nil {
		return nil, err
	}
	if f.cq, err = dev.CreateCQ(o.Receives + sendQueue + 1); err != nil {
		return nil, err
	}
	if err = f.open(); err != nil {
		return nil, err
	}
	f.timer, f.armed = time.AfterFunc(pulse, f.late), f.now()+nack.Time(pulse)
	return f, nil
}

// open makes the queue pair, ready to send and to receive.
func (f *Fabric) open() (err error) {
	f.qp, err = f.pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: f.cq, RecvCQ: f.cq,
		Cap: verbs.QPCap{MaxSendWR: sendQueue, MaxRecvWR: f.o.Receives, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: inlineMax}})
	if err != nil {
		return err
	}
	var random [4]byte
	rand.Read(random[:])
	qkey := binary.BigEndian.Uint32(random[:]) &^ (1 << 31) // with which it would mean the sender's own
	if err := f.qp.Modify(verbs.QPAttr{State: verbs.StateInit, PortNum: 1, QKey: qkey},
		verbs.AttrState|verbs.AttrPKeyIndex|verbs.AttrPort|verbs.AttrQKey); err != nil {
		return err
	}
	if err := f.recvs.init(f.pd, f.o.Receives, f.mtu); err != nil {
		return err
	}
	wrs := make([]verbs.RecvWR, f.o.Receives)
	for i := range wrs {
		wrs[i] = f.recvs.wr(i)
	}
	if _, err := f.qp.PostRecv(wrs); err != nil {
		return err
	}
	if err := f.qp.Modify(verbs.QPAttr{State: verbs.StateRTR}, verbs.AttrState); err != nil {
		return err
	}
	if err := f.qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState|verbs.AttrSQPSN); err != nil {
		return err
	}
	return f.publish(qkey)
}

// now is the time of the core's clock, which is never 0.
func (f *Fabric) now() nack.Time { return nack.Time(time.Since(f.start)) + 1 }

// Limits implements protocol.Net.
func (f *Fabric) Limits(rank int) protocol.Limits {
	eager := f.o.Eager
	if l := &f.links[rank]; l.state == open {
		eager = l.eager
	}
	return protocol.Limits{Eager: eager, Rdma: protocol.Packed}
}

// Send implements protocol.Net. Of messages in a row all but the first leave
// together.
func (f *Fabric) Send(rank int, h *envelope.Header, payload []byte) bool {
	switch f.links[rank].state {
	case unknown, sought:
		f.seek(rank)
		return false
	case lost:
		return true // the core hears of it, if it has not
	}
	h.Put(f.frame[:])
	now := f.now()
	switch err := f.core.Send(now, rank, f.frame[:], payload); {
	case err == nack.ErrNoRoom:
		return false // an event follows
	case err != nil:
		f.lose(rank, err)
		return true
	}
	f.kept++
	if f.inside {
		return true
	}
	if !f.recent || f.kept >= burst {
		f.recent = true
		f.drain(now)
	} else {
		f.arm(now)
	}
	return true
}

// Expose, Hide, Fetch and Store implement protocol.Net: there is no RDMA here,
// and Limits says so.
func (*Fabric) Expose(int, []byte, bool) (envelope.Key, protocol.Exposed, error) {
	return envelope.Key{}, nil, errors.ErrUnsupported
}
func (*Fabric) Hide(protocol.Exposed)                         {}
func (*Fabric) Fetch(int, []byte, envelope.Key, uint64) error { return errors.ErrUnsupported }
func (*Fabric) Store(int, []byte, envelope.Key, uint64) error { return errors.ErrUnsupported }

// lose cuts a rank off.
func (f *Fabric) lose(rank int, why error) {
	l := &f.links[rank]
	if l.state == lost {
		return
	}
	l.state = lost
	f.core.Close(rank)
	f.host.Core().Lost(rank, why)
}

// fail cuts all ranks off.
func (f *Fabric) fail(why error) {
	for rank := range f.links {
		if rank != f.rank {
			f.lose(rank, why)
		}
	}
}

// Stats implements fabric.Fabric.
func (f *Fabric) Stats() map[string]uint64 {
	s := &f.core.Stats
	m := map[string]uint64{"packets": s.Packets, "resent": s.Resent, "asks": s.Asks, "acks": s.Acks, "nacks": s.Nacks, "nacks_heard": s.NacksHeard,
		"early": s.Early, "messages_sent": s.Sent, "messages_received": s.Delivered, "address_handles": uint64(len(f.ahs)),
		"strangers": f.stats.strangers, "refused": f.stats.refused}
	for _, d := range nack.Drops() {
		m["dropped_"+d.String()] = s.Dropped[d]
	}
	return m
}

// Close implements fabric.Fabric. Nothing that anybody waits for is under way.
func (f *Fabric) Close(context.Context) error {
	f.host.Do(func(*protocol.Core) { f.closed = true })
	f.timer.Stop()
	f.cancel()
	f.work.Wait()
	return f.destroy()
}

// destroy gives back what New has made, as far as it has come.
func (f *Fabric) destroy() (err error) {
	try := func(what string, failed error) {
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", what, failed))
		}
	}
	if f.qp != nil {
		try("queue pair", f.qp.Destroy())
	}
	for _, ah := range f.ahs {
		try("address handle", ah.Destroy())
	}
	if f.cq != nil {
		try("completion queue", f.cq.Destroy())
	}
	if f.recvs.mr != nil {
		try("receives", f.recvs.mr.Dereg())
	}
	if f.slots != nil {
		try("packets", f.slots.Dereg())
	}
	if f.pd != nil {
		try("protection domain", f.pd.Dealloc())
	}
	return err
}
