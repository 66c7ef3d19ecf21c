package rdma

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/rankwire"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// A link is the connection to a rank.
type link struct {
	rank              int
	qp                verbs.QP
	conn              *cm.Conn
	up                bool // packets may be sent
	failed            bool // for good
	cause             error
	peerDisconnecting bool // the peer sends no more packets
	coreWaiting       bool // the core waits for room
	probed            bool // a probe is in flight
	waitsForBuffer    bool // for a send buffer
	credits           uint16
	unreturnedCredits uint16
	remoteRing        remoteRing // fast path to the rank
	recent            int        // packets since the last Flush
	batch             batch
	list              *postList // transfers to post together, or nil
	rails             []*rail
	writtenStripes    int        // stripes of writes in flight on rails
	buffers           *recvSlabs // with FlowCredit, or nil
	stream            *stream    // with FlowRDMA and FlowNIC, or nil
	served            bool       // listed in Fabric.servedLinks
	posted            uint32
	completed         uint32
}

// mayNotify reports whether the rank has a receive for a packet or a notice, and whether neither would
// overtake written data.
func (l *link) mayNotify() bool {
	return l.credits > 0 && l.writtenStripes == 0 && (l.stream == nil || l.stream.mayPost())
}

// useCredit counts a notice.
func (l *link) useCredit() {
	if l.stream != nil {
		l.stream.credits.NextSeq()
	} else {
		l.credits--
	}
}

// freeSendSlots returns the number of free work requests of the send queue.
func (l *link) freeSendSlots() int { return sendQueue - int(l.posted-l.completed) }

// wireMagic begins the tickets of connection requests: "MPI1".
const wireMagic = 0x4d504931

// startListeners starts to accept connections of higher ranks, and requests of lower
// ranks to be connected.
func (f *Fabric) startListeners() (err error) {
	f.wire, err = rankwire.Listen(f.dev, f.book, rankwire.Options{Name: "rdma", Magic: wireMagic, Requests: true, CM: cm.Options{Retries: f.o.Retries}})
	if err != nil {
		return err
	}
	f.wire.Serve(f.ctx, f.acceptLink)
	f.wire.ServeRequests(f.ctx, f.Connect)
	return nil
}

// acceptLink accepts a connection: the lower rank is the server (section 3.1).
func (f *Fabric) acceptLink(t rankwire.Ticket, r *cm.Request) {
	var l *link
	var err error
	switch {
	case t.Rank < f.rank:
		err = fmt.Errorf("%w: rank %d is the server of rank %d", fabric.ErrRefused, t.Rank, f.rank)
	case t.Channel != 0:
		f.acceptRail(r, t.Rank)
		return
	default:
		l, err = f.newLink(t.Rank, false)
	}
	if err != nil {
		_ = r.Reject(cm.ConsumerReject, []byte(err.Error()))
		return
	}
	var h handshake
	f.host.Do(func(*protocol.Core) {
		if err = f.applyHandshake(l, t.Private); err == nil {
			h, err = f.newHandshake(l)
		}
	})
	var conn *cm.Conn
	if err != nil {
		_ = r.Reject(cm.ConsumerReject, []byte(err.Error()))
	} else {
		conn, err = r.Accept(f.ctx, l.qp, cm.AcceptOptions{ConnectOptions: f.o.Connect, PrivateData: h.appendTo(nil), Prepare: f.postInitialReceives(l)})
	}
	f.host.Do(func(c *protocol.Core) {
		switch {
		case err == nil:
			f.attachConn(l, conn)
		case errors.Is(err, ErrFlow):
			f.failConnect(l.rank, l, err)
		case !l.failed && l.conn == nil: // the client will retry
			f.removeLink(l)
		}
	})
}

// newLink creates a connection's queue pair. There is one connection per rank, but a
// client may retry.
func (f *Fabric) newLink(rank int, client bool) (*link, error) {
	qp, err := f.pd.CreateQP(f.queueAttr())
	if err != nil {
		return nil, err
	}
	l := &link{rank: rank, qp: qp, credits: uint16(f.o.Credits)}
	switch f.o.Flow {
	case FlowCredit:
		l.buffers = newRecvSlabs(f.pd, qp, envelope.Size+f.o.Eager)
	case FlowRDMA, FlowNIC:
		if l.stream, err = f.newStream(); err != nil {
			return nil, errors.Join(err, qp.Close())
		}
	}
	f.host.Do(func(*protocol.Core) {
		switch old := f.links[rank]; {
		case f.closed:
			err = fabric.ErrClosed
		case old != nil && old.failed:
			err = fmt.Errorf("%w: rank %d failed before: %w", fabric.ErrRefused, rank, old.cause)
		case old != nil && old.qp != nil && !client:
			err = fmt.Errorf("%w: rank %d: already connected", fabric.ErrRefused, rank)
		default:
			if err = f.cq.Resize(f.cqDepth(0)); err == nil {
				f.links[rank] = l
				f.byQP[qp.Num()] = l
			}
		}
	})
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// close closes the queue pair, and releases the memory, of a connection that was not
// established.
func (l *link) close() {
	_ = l.qp.Close()
	if l.buffers != nil {
		_ = l.buffers.close()
	}
	if l.stream != nil {
		_ = l.stream.close()
	}
}

// removeLink removes a connection that was not established.
func (f *Fabric) removeLink(l *link) {
	if f.links[l.rank] == l {
		f.links[l.rank] = nil
	}
	delete(f.byQP, l.qp.Num())
	f.removeRing(l)
	l.close()
}

// attachConn is called when cm has established a connection.
func (f *Fabric) attachConn(l *link, conn *cm.Conn) {
	l.conn = conn
	conn.AfterDone(func() {
		f.host.Do(func(*protocol.Core) {
			if f.closed || l.peerDisconnecting {
				return
			}
			f.failLink(l, fabric.WrapLoss(l.rank, conn.Err()))
		})
	})
	if l.peerDisconnecting || l.failed {
		return
	}
	if l.rank < f.rank { // the client sends the first packet (section 3.2)
		l.up = true
		if f.o.Rails > 1 {
			f.work.Go(func() { f.dialRails(l) })
		}
		f.Send(l.rank, &envelope.Header{Kind: envelope.Hello, Source: uint32(f.rank)}, nil)
		f.host.Core().Resume(l.rank)
	}
}

// handleHello handles the client's first packet: the server may send now.
func (f *Fabric) handleHello(l *link) {
	if l.up || l.rank < f.rank {
		return
	}
	l.up = true
	f.wire.Notify(l.qp)
	f.host.Core().Resume(l.rank)
}

// startConnect connects to a rank, unless that is in progress.
func (f *Fabric) startConnect(rank int) {
	if f.links[rank] != nil || f.closed {
		return
	}
	if rank < f.rank {
		f.links[rank] = &link{rank: rank} // in progress
		f.work.Go(func() { f.dialRank(rank) })
		return
	}
	f.links[rank] = &link{rank: rank}
	f.work.Go(func() { f.requestConnect(rank) })
}

// Connect starts the connection to a lower rank, as sending to it does. It is called
// without the lock.
func (f *Fabric) Connect(rank int) {
	f.host.Do(func(*protocol.Core) {
		if rank < f.rank {
			f.startConnect(rank)
		}
	})
}

// connectBackTimeout is the time in which a rank that was asked to connect must do so.
const connectBackTimeout = 10 * time.Second

// dialRank connects to a lower rank.
func (f *Fabric) dialRank(rank int) {
	ctx, cancel := vtime.WithTimeout(f.ctx, rankwire.ConnectTimeout)
	defer cancel()
	var l *link
	conn, err := func() (*cm.Conn, error) {
		var err error
		if l, err = f.newLink(rank, true); err != nil {
			return nil, err
		}
		var h handshake
		if f.host.Do(func(*protocol.Core) { h, err = f.newHandshake(l) }); err != nil {
			return nil, err
		}
		conn, err := f.wire.Dial(ctx, rank, 0, l.qp, cm.DialOptions{PrivateData: h.appendTo(nil), ConnectOptions: f.o.Connect, Prepare: f.postInitialReceives(l)})
		return conn, flowError(err)
	}()
	f.host.Do(func(c *protocol.Core) {
		if err != nil {
			f.failConnect(rank, l, err)
			return
		}
		err := f.applyHandshake(l, conn.PrivateData())
		f.attachConn(l, conn)
		if err != nil {
			f.failLink(l, err)
		}
	})
}

// requestConnect asks a higher rank to connect.
func (f *Fabric) requestConnect(rank int) {
	ctx, cancel := vtime.WithTimeout(f.ctx, rankwire.ConnectTimeout)
	defer cancel()
	if err := f.wire.RequestDial(ctx, rank); err != nil {
		f.host.Do(func(*protocol.Core) { f.failConnect(rank, nil, err) })
		return
	}
	vtime.AfterFunc(connectBackTimeout, func() { f.checkConnectedBack(rank) })
}

// errNoConnectBack says that a rank was asked to connect and did not.
var errNoConnectBack = errors.New("no connection after request")

// checkConnectedBack fails a rank that was asked to connect and did not in time.
func (f *Fabric) checkConnectedBack(rank int) {
	f.host.Do(func(*protocol.Core) {
		if l := f.links[rank]; l == nil || l.qp == nil {
			f.failConnect(rank, nil, errNoConnectBack)
		}
	})
}

func (f *Fabric) failConnect(rank int, l *link, err error) {
	if f.closed {
		return
	}
	if l != nil {
		f.removeLink(l)
	}
	if at := f.links[rank]; at != nil && at.up {
		return
	}
	if at := f.links[rank]; at != nil && at.failed {
		return
	}
	err = fmt.Errorf("connect: %w", fabric.WrapLoss(rank, err))
	f.links[rank] = &link{rank: rank, failed: true, cause: err}
	f.host.Core().FailPeer(rank, err)
}

// ConnectAll implements fabric.Fabric. Each rank connects to the ones below it, the
// nearest first (section 3.1), so that they do not all start with rank 0.
func (f *Fabric) ConnectAll(ctx context.Context) error {
	f.host.Do(func(*protocol.Core) {
		for rank := f.rank - 1; rank >= 0; rank-- {
			f.startConnect(rank)
		}
	})
	return nil
}

// Close implements fabric.Fabric.
func (f *Fabric) Close(ctx context.Context) error {
	var conns []*cm.Conn
	f.host.Do(func(*protocol.Core) {
		f.closed = true
		for _, l := range f.links {
			if l != nil && l.conn != nil {
				conns = append(conns, l.conn)
			}
		}
		for _, r := range f.rails {
			if r.conn != nil {
				conns = append(conns, r.conn)
			}
		}
	})
	rankwire.DisconnectAll(ctx, conns)
	f.cancel()
	err := f.wire.Close()
	f.work.Wait()
	for _, r := range f.rails {
		err = errors.Join(err, r.qp.Close())
	}
	for _, l := range f.links {
		if l != nil && l.qp != nil {
			err = errors.Join(err, l.qp.Close())
		}
	}
	for _, q := range f.queues {
		err = errors.Join(err, q.destroyQPs())
	}
	return err
}
