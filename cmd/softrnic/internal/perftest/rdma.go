package perftest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/verbs"
)

// rdma is the channel of -R and -z: a queue pair that the RDMA CM has
// connected. A message is one SEND; a single receive is posted, and anew once
// the message was taken. One goroutine may read while another writes.
type rdma struct {
	place    *rdmacm.End
	pd       verbs.PD
	mr       verbs.MR // what comes, and behind it what leaves
	out, in  verbs.CQ
	qp       verbs.QP
	conn     *cm.Conn
	asked    *cm.Request // of a client that is not accepted yet
	options  verbs.ConnectOptions
	name     string // of the peer
	patience time.Duration
	freed    bool

	unwatch func() // ends the watch of the peer's process; nil before there is a connection

	mu   sync.Mutex // guards what follows
	ctx  context.Context
	gone error // why the peer's process is known to have ended
}

// maxMessage is the length of the longest message in bytes.
const maxMessage = max(KeysLongLen, oob.TermsLen)

// newRDMA makes a channel that is not connected yet. It must be closed.
func newRDMA(ctx context.Context, place *rdmacm.End, p *plan) (*rdma, error) {
	c := &rdma{place: place, ctx: ctx, patience: p.Patience}
	c.options = verbs.ConnectOptions{RetryCnt: orZero(p.RetryCount), RNRRetry: 7, MaxRdAtomic: verbs.Zero, MaxDestRdAtomic: verbs.Zero}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.free())
	}
	return c, nil
}

func (c *rdma) open() (err error) {
	if c.pd, err = c.place.Device.AllocPD(); err != nil {
		return err
	}
	if c.mr, err = c.pd.RegMR(make([]byte, 2*maxMessage), verbs.AccessLocalWrite); err != nil {
		return err
	}
	if c.out, err = c.place.Device.CreateCQ(2); err != nil {
		return err
	}
	if c.in, err = c.place.Device.CreateCQ(2); err != nil {
		return err
	}
	c.qp, err = c.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c.out, RecvCQ: c.in,
		Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}})
	return err
}

// dial connects to a server.
func (c *rdma) dial(peer netip.AddrPort) (err error) {
	ctx, cancel := c.limited()
	defer cancel()
	c.name = peer.String()
	c.conn, err = c.place.Manager.Dial(ctx, peer, cm.DialOptions{QP: c.qp, Prepare: c.post, ConnectOptions: c.options})
	if err == nil {
		c.watchPeer()
	}
	return err
}

// accept accepts the client that has asked.
func (c *rdma) accept() (err error) {
	ctx, cancel := c.limited()
	defer cancel()
	c.conn, err = c.asked.Accept(ctx, c.qp, cm.AcceptOptions{Prepare: c.post, ConnectOptions: c.options})
	if err != nil {
		return c.fail("connect", err)
	}
	c.watchPeer()
	return nil
}

// watchPeer ends the connection when the peer's process has ended, as the system does with
// the connection of TCP.
func (c *rdma) watchPeer() {
	c.unwatch = rdmacm.WatchPeer(context.Background(), c.place.Manager, c.conn.RemoteAdapter(), nil, func(why error) {
		c.mu.Lock()
		c.gone = why
		c.mu.Unlock()
		hangUp(c.conn)
	})
}

// peerGone returns why the peer's process is known to have ended, or nil.
func (c *rdma) peerGone() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// post posts the receive.
func (c *rdma) post(qp verbs.QP) error {
	_, err := qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{c.mr.SGE(0, maxMessage)}}})
	return err
}

func (c *rdma) write(b []byte, doing string) error {
	copy(c.mr.Bytes()[maxMessage:], b)
	_, err := c.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{c.mr.SGE(maxMessage, len(b))}}})
	if err != nil {
		return c.fail(doing, err)
	}
	ctx, cancel := c.limited()
	defer cancel()
	_, err = c.completion(ctx, c.out, doing)
	return err
}

func (c *rdma) read(b []byte, doing string) error {
	ctx, cancel := c.limited()
	defer cancel()
	return c.take(ctx, b, doing)
}

func (c *rdma) await(b []byte, doing string) error { return c.take(c.context(), b, doing) }

// take takes a message.
func (c *rdma) take(ctx context.Context, b []byte, doing string) error {
	wc, err := c.completion(ctx, c.in, doing)
	if err != nil {
		return err
	}
	copy(b, c.mr.Bytes()[:maxMessage])
	if err := c.post(c.qp); err != nil {
		return c.fail(doing, err)
	}
	if int(wc.ByteLen) != len(b) {
		return c.fail(doing, nonsense("a message of %d bytes came instead of %d", wc.ByteLen, len(b)))
	}
	return nil
}

// completion waits for one.
func (c *rdma) completion(ctx context.Context, q verbs.CQ, doing string) (verbs.WC, error) {
	var wc [1]verbs.WC
	_, err := q.PollWait(ctx, wc[:])
	if err == nil {
		err = wc[0].Err()
	}
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && c.context().Err() == nil:
		err = c.fail(doing, fmt.Errorf("%w for %v", oob.ErrSilent, c.patience))
	case ctx.Err() != nil:
		err = c.fail(doing, context.Cause(c.context()))
	case c.peerGone() != nil:
		err = c.fail(doing, c.peerGone())
	case c.conn.Err() != nil:
		err = c.fail(doing, fmt.Errorf("%w; its own output says why", oob.ErrGone))
	default:
		err = c.fail(doing, err)
	}
	return wc[0], err
}

func (c *rdma) fail(doing string, err error) error {
	return &oob.PeerError{Peer: c.name, Doing: doing, Err: err}
}

func (c *rdma) context() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx
}

func (c *rdma) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.context(), c.patience)
}

// Outlive implements oob.Client.
func (c *rdma) Outlive(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = ctx
}

// PeerName implements oob.Client.
func (c *rdma) PeerName() string { return c.name }

func (c *rdma) binary() bool { return true }
func (c *rdma) peer() string { return c.name }

// Close implements oob.Client. The peer is told, but not waited for longer than
// goodbye.
func (c *rdma) Close() error {
	if c.unwatch != nil {
		c.unwatch()
	}
	if c.conn != nil {
		hangUp(c.conn)
	} else if c.asked != nil {
		_ = c.asked.Reject(nil) // if it was not answered
	}
	return c.free()
}

func (c *rdma) close() error { return c.Close() }

// goodbye is how long the end of a connection may take.
const goodbye = time.Second

// hangUp ends a connection. That the peer does not answer, as it may be gone,
// is no error at the end.
func hangUp(conn *cm.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	_ = conn.Disconnect(ctx)
}

// free frees what the channel has of the verbs, which ends a read that still waits.
// Freeing twice is safe.
func (c *rdma) free() error {
	if c.freed {
		return nil
	}
	c.freed = true
	var errs []error
	if c.qp != nil {
		errs = append(errs, c.qp.Destroy())
	}
	for _, q := range []verbs.CQ{c.out, c.in} {
		if q != nil {
			errs = append(errs, q.Destroy())
		}
	}
	if c.mr != nil {
		errs = append(errs, c.mr.Dereg())
	}
	if c.pd != nil {
		errs = append(errs, c.pd.Dealloc())
	}
	return errors.Join(errs...)
}
