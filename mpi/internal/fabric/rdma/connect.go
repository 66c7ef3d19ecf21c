package rdma

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
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
	waitsForBuffer    bool // for a send buffer
	credits           uint16
	unreturnedCredits uint16
	remoteRing        remoteRing // fast path to the rank
	recent            int        // packets since the last Flush
	batch             batch
	list              *postList // transfers to post together, or nil
	rails             []*rail
	posted            uint32
	completed         uint32
}

// freeSendSlots returns the number of free work requests of the send queue.
func (l *link) freeSendSlots() int { return sendQueue - int(l.posted-l.completed) }

// A hello is the private data of a client's REQ.
type hello struct {
	job  uint64
	rank uint32
	rail uint32 // 0 is the first queue pair
}

const (
	helloMagic = 0x4d504931 // "MPI1"
	helloSize  = 20
)

func (t hello) marshal() []byte {
	b := binary.BigEndian.AppendUint32(nil, helloMagic)
	b = binary.BigEndian.AppendUint64(b, t.job)
	b = binary.BigEndian.AppendUint32(b, t.rank)
	return binary.BigEndian.AppendUint32(b, t.rail)
}

// parseHello checks and decodes a hello.
func (f *Fabric) parseHello(b []byte) (rank int, err error) {
	if len(b) < helloSize || binary.BigEndian.Uint32(b) != helloMagic {
		return 0, fmt.Errorf("%w: malformed hello of %d bytes", fabric.ErrRefused, len(b))
	}
	if job := binary.BigEndian.Uint64(b[4:]); job != f.jobHash() {
		return 0, fmt.Errorf("%w: job %#x, want %#x", fabric.ErrRefused, job, f.jobHash())
	}
	rank = int(binary.BigEndian.Uint32(b[12:]))
	if rank >= len(f.links) || rank == f.rank {
		return 0, fmt.Errorf("%w: rank %d out of range", fabric.ErrRefused, rank)
	}
	return rank, nil
}

// isRail reports whether a hello accepted by parseHello is of a rail.
func isRail(b []byte) bool { return binary.BigEndian.Uint32(b[16:]) != 0 }

func (f *Fabric) jobHash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(f.book.JobID()))
	return h.Sum64()
}

func (f *Fabric) marshalHello(rail int) []byte {
	return hello{f.jobHash(), uint32(f.rank), uint32(rail)}.marshal()
}

// A rankAddress is the address at which a rank listens, as in the book.
type rankAddress struct {
	at      netip.AddrPort // IP address and RDMA-CM port, of both port spaces
	udpPort uint16         // UDP port of the adapter
}

func (a rankAddress) String() string { return fmt.Sprintf("%v/%d", a.at, a.udpPort) }

func parseAddress(s string) (a rankAddress, err error) {
	at, udp, _ := strings.Cut(s, "/")
	if a.at, err = netip.ParseAddrPort(at); err != nil {
		return a, err
	}
	n, err := strconv.ParseUint(udp, 10, 16)
	a.udpPort = uint16(n)
	return a, err
}

func addressKey(rank int) string { return "rdma-" + strconv.Itoa(rank) }

// startListeners starts to accept connections of higher ranks, and requests of lower
// ranks to be connected.
func (f *Fabric) startListeners() (err error) {
	if f.cm, err = cm.New(f.dev, cm.Options{Retries: f.o.Retries}); err != nil {
		return err
	}
	l, err := f.cm.Listen(0, cm.ListenOptions{NoUC: true})
	if err != nil {
		return err
	}
	asks, err := f.cm.ListenUD(l.Addr().Port(), cm.ListenOptions{})
	if err != nil {
		return err
	}
	a := rankAddress{l.Addr(), f.cm.Addr().Port()}
	if err := f.book.Put(addressKey(f.rank), a.String()); err != nil {
		return err
	}
	f.work.Go(func() { f.acceptLoop(l) })
	f.work.Go(func() { f.connectRequestLoop(asks) })
	return nil
}

// acceptLoop accepts connections: the lower rank is the server (section 3.1).
func (f *Fabric) acceptLoop(l *cm.Listener) {
	for {
		r, err := l.Accept(f.ctx)
		if err != nil {
			return
		}
		f.work.Go(func() { f.acceptLink(r) })
	}
}

func (f *Fabric) acceptLink(r *cm.Request) {
	rank, err := f.parseHello(r.PrivateData())
	if err == nil && rank < f.rank {
		err = fmt.Errorf("%w: rank %d is the server of rank %d", fabric.ErrRefused, rank, f.rank)
	}
	if err == nil && isRail(r.PrivateData()) {
		f.acceptRail(r, rank)
		return
	}
	var l *link
	if err == nil {
		l, err = f.newLink(rank, false)
	}
	if err != nil {
		_ = r.Reject(cm.ConsumerReject, []byte(err.Error()))
		return
	}
	var v remoteRing
	f.host.Do(func(*protocol.Core) {
		l.remoteRing.unmarshal(r.PrivateData()[helloSize:])
		v, err = f.createRing(l)
	})
	var conn *cm.Conn
	if err == nil {
		conn, err = r.Accept(f.ctx, l.qp, cm.AcceptOptions{ConnectOptions: f.o.Connect, PrivateData: v.appendTo(nil)})
	}
	f.host.Do(func(c *protocol.Core) {
		if err != nil {
			if !l.failed && l.conn == nil { // the client will retry
				f.removeLink(l)
			}
			return
		}
		f.attachConn(l, conn)
	})
}

// connectRequestLoop connects to the lower ranks that request it.
func (f *Fabric) connectRequestLoop(asks *cm.UDListener) {
	for {
		r, err := asks.Accept(f.ctx)
		if err != nil {
			return
		}
		rank, err := f.parseHello(r.PrivateData())
		_ = r.Reject(cm.UDReject, []byte("heard")) // the rejection is the acknowledgement
		if err == nil && rank < f.rank {
			f.host.Do(func(*protocol.Core) { f.startConnect(rank) })
		}
	}
}

// newLink creates a connection's queue pair. There is one connection per rank, but a
// client may retry.
func (f *Fabric) newLink(rank int, client bool) (*link, error) {
	qp, err := f.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: f.cq, RecvCQ: f.cq, SRQ: f.srq, SelectiveSignaling: true,
		Cap: verbs.QPCap{MaxSendWR: sendQueue, MaxSendSGE: 1, MaxInlineData: inlineMax}})
	if err != nil {
		return nil, err
	}
	l := &link{rank: rank, qp: qp, credits: uint16(f.o.Credits)}
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
		_ = qp.Close()
		return nil, err
	}
	return l, nil
}

// removeLink removes a connection that was not established.
func (f *Fabric) removeLink(l *link) {
	if f.links[l.rank] == l {
		f.links[l.rank] = nil
	}
	delete(f.byQP, l.qp.Num())
	f.removeRing(l)
	_ = l.qp.Close()
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
	f.cm.Notify(l.qp)
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

// connectTimeout is the time limit of a connection.
const connectTimeout = 60 * time.Second

// connectBackTimeout is the time in which a rank that was asked to connect must do so.
const connectBackTimeout = 10 * time.Second

// lookupAddress returns the address of a rank from the book.
func (f *Fabric) lookupAddress(ctx context.Context, rank int) (rankAddress, error) {
	s, err := f.book.Get(ctx, addressKey(rank))
	if err != nil {
		return rankAddress{}, err
	}
	return parseAddress(s)
}

// dialRank connects to a lower rank.
func (f *Fabric) dialRank(rank int) {
	ctx, cancel := context.WithTimeout(f.ctx, connectTimeout)
	defer cancel()
	var l *link
	conn, err := func() (*cm.Conn, error) {
		a, err := f.lookupAddress(ctx, rank)
		if err != nil {
			return nil, err
		}
		if l, err = f.newLink(rank, true); err != nil {
			return nil, err
		}
		var v remoteRing
		if f.host.Do(func(*protocol.Core) { v, err = f.createRing(l) }); err != nil {
			return nil, err
		}
		return f.cm.Dial(ctx, a.at, l.qp, cm.DialOptions{PrivateData: v.appendTo(f.marshalHello(0)), UDPPort: a.udpPort, ConnectOptions: f.o.Connect})
	}()
	f.host.Do(func(c *protocol.Core) {
		if err != nil {
			f.failConnect(rank, l, err)
			return
		}
		l.remoteRing.unmarshal(conn.PrivateData())
		f.attachConn(l, conn)
	})
}

// requestConnect asks a higher rank to connect.
func (f *Fabric) requestConnect(rank int) {
	ctx, cancel := context.WithTimeout(f.ctx, connectTimeout)
	defer cancel()
	a, err := f.lookupAddress(ctx, rank)
	if err == nil {
		_, err = f.cm.DialUD(ctx, a.at, cm.UDDialOptions{UDPPort: a.udpPort, PrivateData: f.marshalHello(0)})
	}
	if rejected := (*cm.UDRejectError)(nil); errors.As(err, &rejected) {
		time.AfterFunc(connectBackTimeout, func() { f.checkConnectedBack(rank) }) // the request was received
		return
	}
	f.host.Do(func(*protocol.Core) { f.failConnect(rank, nil, err) })
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

// disconnectTimeout is the time limit of a disconnect, enough for one retransmission.
// The peer closes as well: if its reply got lost, it will not reply again.
const disconnectTimeout = 600 * time.Millisecond

// Close implements fabric.Fabric.
func (f *Fabric) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, disconnectTimeout)
	defer cancel()
	var ends sync.WaitGroup
	f.host.Do(func(*protocol.Core) {
		f.closed = true
		for _, l := range f.links {
			if l != nil && l.conn != nil {
				ends.Go(func() { _ = l.conn.Disconnect(ctx, nil) })
			}
		}
		for _, r := range f.rails {
			if r.conn != nil {
				ends.Go(func() { _ = r.conn.Disconnect(ctx, nil) })
			}
		}
	})
	ends.Wait()
	f.cancel()
	err := f.cm.Close()
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
