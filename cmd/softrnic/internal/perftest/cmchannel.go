package perftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/internal/closing"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/verbs"
)

// A cmChannel is the channel of -R and -z: a queue pair connected by RDMA-CM. A message is one
// SEND; a single receive is posted, and reposted after each message. One goroutine may read while
// another writes.
type cmChannel struct {
	endpoint       *rdmacm.Endpoint
	pd             verbs.PD
	mr             verbs.MR // receive buffer, then send buffer
	sendCQ, recvCQ verbs.CQ
	qp             verbs.QP
	conn           *cm.Conn
	request        *cm.Request // of a client before acceptClient
	options        verbs.ConnectOptions
	peerName       string // of the peer
	timeout        time.Duration

	unwatch func() // ends the watch of the peer's process; nil before there is a connection

	mu      sync.Mutex // guards ctx and exitErr
	ctx     context.Context
	exitErr error // the reason, after the peer's process has exited
}

// maxMessage is the maximum length of a message in bytes.
const maxMessage = max(KeysLongLen, oob.ParamsLen)

// newCMChannel returns a channel that is not connected yet. The caller must close it.
func newCMChannel(ctx context.Context, place *rdmacm.Endpoint, p *plan) (*cmChannel, error) {
	c := &cmChannel{endpoint: place, ctx: ctx, timeout: p.HandshakeTimeout}
	c.options = verbs.ConnectOptions{Retries: countOption(p.RetryCount), RNRRetries: verbs.RetryForever, MaxRdAtomic: -1, MaxDestRdAtomic: -1}
	if err := c.allocate(); err != nil {
		return nil, errors.Join(err, c.free())
	}
	return c, nil
}

func (c *cmChannel) allocate() (err error) {
	if c.pd, err = c.endpoint.Device.AllocPD(); err != nil {
		return err
	}
	if c.mr, err = c.pd.RegMR(make([]byte, 2*maxMessage), verbs.AccessLocalWrite); err != nil {
		return err
	}
	if c.sendCQ, err = c.endpoint.Device.CreateCQ(2); err != nil {
		return err
	}
	if c.recvCQ, err = c.endpoint.Device.CreateCQ(2); err != nil {
		return err
	}
	c.qp, err = c.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c.sendCQ, RecvCQ: c.recvCQ,
		Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}})
	return err
}

// dialServer connects to a server.
func (c *cmChannel) dialServer(peer netip.AddrPort) (err error) {
	ctx, cancel := c.withTimeout()
	defer cancel()
	c.peerName = peer.String()
	c.conn, err = c.endpoint.Manager.Dial(ctx, peer, c.qp, cm.DialOptions{Prepare: c.postReceive, ConnectOptions: c.options})
	if err == nil {
		c.watchPeer()
	}
	return err
}

// acceptClient accepts the client's request.
func (c *cmChannel) acceptClient() (err error) {
	ctx, cancel := c.withTimeout()
	defer cancel()
	c.conn, err = c.request.Accept(ctx, c.qp, cm.AcceptOptions{Prepare: c.postReceive, ConnectOptions: c.options})
	if err != nil {
		return c.peerError("connect", err)
	}
	c.watchPeer()
	return nil
}

// watchPeer disconnects when the peer's process has exited, as the system does with a TCP
// connection.
func (c *cmChannel) watchPeer() {
	c.unwatch = rdmacm.WatchPeer(context.Background(), c.endpoint.Manager, c.conn.RemoteAdapter(), nil, func(cause error) {
		c.mu.Lock()
		c.exitErr = cause
		c.mu.Unlock()
		disconnect(c.conn)
	})
}

// peerExitError returns the error of an exited peer process, or nil.
func (c *cmChannel) peerExitError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exitErr
}

// postReceive posts the receive.
func (c *cmChannel) postReceive(qp verbs.QP) error {
	_, err := qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{c.mr.SGE(0, maxMessage)}}})
	return err
}

func (c *cmChannel) write(b []byte, doing string) error {
	copy(c.mr.Bytes()[maxMessage:], b)
	_, err := c.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{c.mr.SGE(maxMessage, len(b))}}})
	if err != nil {
		return c.peerError(doing, err)
	}
	ctx, cancel := c.withTimeout()
	defer cancel()
	_, err = c.waitCompletion(ctx, c.sendCQ, doing)
	return err
}

func (c *cmChannel) read(b []byte, doing string) error {
	ctx, cancel := c.withTimeout()
	defer cancel()
	return c.readMessage(ctx, b, doing)
}

func (c *cmChannel) await(b []byte, doing string) error {
	return c.readMessage(c.currentContext(), b, doing)
}

// readMessage waits for a message of len(b) bytes.
func (c *cmChannel) readMessage(ctx context.Context, b []byte, doing string) error {
	wc, err := c.waitCompletion(ctx, c.recvCQ, doing)
	if err != nil {
		return err
	}
	copy(b, c.mr.Bytes()[:maxMessage])
	if err := c.postReceive(c.qp); err != nil {
		return c.peerError(doing, err)
	}
	if int(wc.ByteLen) != len(b) {
		return c.peerError(doing, protocolErrorf("message of %d bytes, want %d", wc.ByteLen, len(b)))
	}
	return nil
}

// waitCompletion waits for one completion.
func (c *cmChannel) waitCompletion(ctx context.Context, q verbs.CQ, doing string) (verbs.WC, error) {
	var wc [1]verbs.WC
	_, err := q.PollWait(ctx, wc[:])
	if err == nil {
		err = wc[0].Err()
	}
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && c.currentContext().Err() == nil:
		err = c.peerError(doing, fmt.Errorf("%w: no reply within %v", oob.ErrTimeout, c.timeout))
	case ctx.Err() != nil:
		err = c.peerError(doing, context.Cause(c.currentContext()))
	case c.peerExitError() != nil:
		err = c.peerError(doing, c.peerExitError())
	case c.conn.Err() != nil:
		err = c.peerError(doing, fmt.Errorf("%w; see the peer's output", oob.ErrPeerClosed))
	default:
		err = c.peerError(doing, err)
	}
	return wc[0], err
}

func (c *cmChannel) peerError(doing string, err error) error {
	return &oob.PeerError{Peer: c.peerName, Op: doing, Err: err}
}

func (c *cmChannel) currentContext() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx
}

func (c *cmChannel) withTimeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.currentContext(), c.timeout)
}

// SetContext implements oob.Client.
func (c *cmChannel) SetContext(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = ctx
}

// PeerName implements oob.Client.
func (c *cmChannel) PeerName() string { return c.peerName }

func (c *cmChannel) binary() bool { return true }
func (c *cmChannel) peer() string { return c.peerName }

// Close implements oob.Client. It disconnects and waits up to disconnectTimeout for the peer.
func (c *cmChannel) Close() error {
	if c.unwatch != nil {
		c.unwatch()
	}
	if c.conn != nil {
		if c.request != nil && c.endpoint.Device.QueryDevice().MaxAH == 0 { // iWARP: the end of the stream would overtake siw's completions
			select {
			case <-c.conn.Done():
			case <-time.After(disconnectTimeout):
			}
		}
		disconnect(c.conn)
	} else if c.request != nil {
		_ = c.request.Reject(cm.ConsumerReject, nil) // if it was not answered
	}
	return c.free()
}

func (c *cmChannel) close() error { return c.Close() }

// disconnectTimeout bounds a disconnect.
const disconnectTimeout = time.Second

// disconnect ends a connection. A peer that does not reply may have exited, so this is no error.
func disconnect(conn *cm.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), disconnectTimeout)
	defer cancel()
	_ = conn.Disconnect(ctx, nil)
}

// free frees the verbs objects, which ends a read in progress. Freeing twice is safe.
func (c *cmChannel) free() error {
	return closing.All[io.Closer](c.qp, c.sendCQ, c.recvCQ, c.mr, c.pd)
}
