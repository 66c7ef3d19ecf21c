package rdma

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/rankwire"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Rails are additional queue pairs between two ranks (multi-rail, section 2.2 of the iWARP paper). A long message is read or written
// over all of them concurrently, in stripes: each queue pair has its own window in the adapter, and an adapter with several engines
// serves them in parallel. No packet may overtake a write, so packets to the rank wait until the written stripes are acknowledged.

// A rail is an additional queue pair.
type rail struct {
	link     *link
	qp       verbs.QP
	conn     *cm.Conn
	up       bool // reads may be posted
	inFlight int  // stripes in flight
}

// MaxRails is the maximum number of queue pairs between two ranks.
const MaxRails = 8

// railQueue is the depth of a rail's send queue.
const railQueue = 32

// stripeMin is the minimum length in bytes of a stripe and of a striped message.
const stripeMin = 256 << 10

// railsFor returns the rails for a transfer of n bytes, in addition to the first queue
// pair.
func (f *Fabric) railsFor(l *link, n int) []*rail {
	f.stripeRails = f.stripeRails[:0]
	for _, r := range l.rails {
		if (len(f.stripeRails)+2)*stripeMin <= n && n <= maxTransferWR && r.up && r.inFlight < railQueue {
			f.stripeRails = append(f.stripeRails, r)
		}
	}
	return f.stripeRails
}

// postStripes posts the stripes of the rails, for the end of b, and returns the rest of
// b. The transfer is complete when all parts are.
func (f *Fabric) postStripes(rails []*rail, b []byte, mr *region, index int, wr verbs.SendWR) []byte {
	part := (len(b)/(len(rails)+1) + 4095) &^ 4095
	for _, r := range rails {
		n := len(b) - min(part, len(b))
		f.sge[0] = mr.sge(b[n:])
		w := wr
		w.RemoteAddr += uint64(n)
		w.Flags, w.WRID, w.SGList = verbs.SendSignaled, wrid(wrStripe, index, 0), f.sge[:]
		f.wr[0] = w
		if _, err := r.qp.PostSend(f.wr[:]); err != nil {
			f.failLink(r.link, err)
			return b
		}
		r.inFlight++
		f.stats.stripes++
		m := &f.transfers.list[index]
		m.parts++
		if wr.Opcode == verbs.WRRDMAWrite {
			m.written = true
			r.link.writtenStripes++
		}
		b = b[:n]
	}
	return b
}

// handleStripe handles the completion of a stripe.
func (f *Fabric) handleStripe(wc *verbs.WC, index int) {
	r := f.rails[wc.QPN]
	if r != nil {
		r.inFlight--
		if f.transfers.list[index].written {
			r.link.writtenStripes--
		}
	}
	cause := wc.Err()
	if cause != nil && r != nil {
		cause = fabric.WrapLoss(r.link.rank, cause)
	}
	f.completePart(index, cause)
	if r == nil {
		return
	}
	if cause != nil {
		f.failLink(r.link, cause)
	} else if r.link.coreWaiting {
		f.resumeLink(r.link)
	}
}

// completePart records the completion of one part of a transfer. The last one finishes
// the transfer: until then an adapter may write to its memory.
func (f *Fabric) completePart(index int, err error) {
	m := &f.transfers.list[index]
	if !m.live {
		return
	}
	if m.err == nil {
		m.err = err
	}
	if m.parts--; m.parts == 0 {
		f.finishTransfer(index, m.err)
	}
}

// newRail creates the queue pair of a rail.
func (f *Fabric) newRail(l *link) (r *rail, err error) {
	qp, err := f.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: f.cq, RecvCQ: f.cq, SRQ: f.srq,
		Cap: verbs.QPCap{MaxSendWR: railQueue, MaxSendSGE: 1}})
	if err != nil {
		return nil, err
	}
	r = &rail{link: l, qp: qp}
	f.host.Do(func(*protocol.Core) {
		switch {
		case f.closed || l.failed:
			err = fabric.ErrClosed
		case len(l.rails) >= f.o.Rails-1:
			err = fmt.Errorf("%w: rank %d: limit of %d rails", fabric.ErrRefused, l.rank, f.o.Rails)
		default:
			f.rails[qp.Num()] = r
			l.rails = append(l.rails, r)
			err = f.cq.Resize(f.cqDepth(0))
		}
	})
	if err != nil {
		return nil, errors.Join(err, qp.Close())
	}
	return r, nil
}

// dialRails connects the rails of a connection as the client.
func (f *Fabric) dialRails(l *link) {
	ctx, cancel := vtime.WithTimeout(f.ctx, rankwire.ConnectTimeout)
	defer cancel()
	for i := 1; i < f.o.Rails; i++ {
		r, err := f.newRail(l)
		if err != nil {
			return
		}
		conn, err := f.wire.Dial(ctx, l.rank, i, r.qp, cm.DialOptions{ConnectOptions: f.o.Connect})
		if f.attachRail(r, conn, err); err != nil {
			return
		}
	}
}

// acceptRail accepts a rail as the server.
func (f *Fabric) acceptRail(q *cm.Request, rank int) {
	var l *link
	f.host.Do(func(*protocol.Core) { l = f.links[rank] })
	err := fmt.Errorf("%w: rank %d: rail without a connection", fabric.ErrRefused, rank)
	var r *rail
	if l != nil && l.qp != nil {
		r, err = f.newRail(l)
	}
	if err != nil {
		_ = q.Reject(cm.ConsumerReject, []byte(err.Error()))
		return
	}
	conn, err := q.Accept(f.ctx, r.qp, cm.AcceptOptions{ConnectOptions: f.o.Connect})
	f.attachRail(r, conn, err)
}

// attachRail records the result of a rail's connection. A failed rail is not used.
func (f *Fabric) attachRail(r *rail, conn *cm.Conn, err error) {
	f.host.Do(func(*protocol.Core) {
		if r.conn = conn; err != nil {
			return
		}
		r.up = !r.link.failed && !f.closed
		conn.AfterDone(func() { f.host.Do(func(*protocol.Core) { r.up = false }) })
	})
}

// failRails ends remote access over the rails of a failed connection.
func (l *link) failRails() {
	for _, r := range l.rails {
		r.up = false
		_ = r.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState)
	}
}
