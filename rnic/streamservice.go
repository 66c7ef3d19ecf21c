package rnic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/iwarp"
	"github.com/softrnic/softrnic/verbs"
)

// Connection managers set up connections through these types, on TCP ports of their own.

var (
	_ adapter.StreamDevice  = (*Device)(nil)
	_ adapter.Streams       = (*streamConnector)(nil)
	_ adapter.StreamRequest = (*streamRequest)(nil)
	_ adapter.StreamConn    = (*streamConn)(nil)
)

// Streams implements adapter.StreamDevice.
func (d *Device) Streams() adapter.Streams {
	if d.connector == nil {
		return nil
	}
	return d.connector
}

// A streamListener listens for a connection manager.
type streamListener struct {
	net.Listener
	once sync.Once
}

// Addr returns the address and port.
func (l *streamListener) Addr() netip.AddrPort {
	at := l.Listener.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// Close implements adapter.StreamListener.
func (l *streamListener) Close() (err error) {
	l.once.Do(func() { err = l.Listener.Close() })
	return err
}

// AddManager implements adapter.Streams.
func (c *streamConnector) AddManager() error {
	if err := c.dev.checkUsable("open connection manager"); err != nil {
		return err
	}
	if !c.managed.CompareAndSwap(false, true) {
		return &verbs.OpError{Op: "open connection manager", Object: c.dev.name, Err: verbs.ErrBusy, Detail: "the device has one already"}
	}
	return nil
}

// RemoveManager implements adapter.Streams.
func (c *streamConnector) RemoveManager() { c.managed.Store(false) }

// Closed implements adapter.Streams.
func (c *streamConnector) Closed() bool { return c.dev.unusable.Load() }

// Listen implements adapter.Streams.
func (c *streamConnector) Listen(port uint16, serve func(adapter.StreamRequest), ended func()) (adapter.StreamListener, error) {
	var lc net.ListenConfig
	inner, err := lc.Listen(c.ctx, "tcp", netip.AddrPortFrom(c.dev.addr.Addr(), port).String())
	if err != nil {
		return nil, err
	}
	l := &streamListener{Listener: inner}
	started := c.spawnTask(func() {
		stop := context.AfterFunc(c.ctx, func() { l.Close() })
		defer stop()
		defer ended()
		c.acceptConns(inner.(*net.TCPListener).AcceptTCP, func(conn *net.TCPConn) { c.readRequest(conn, serve) })
	})
	if !started {
		l.Close()
		return nil, verbs.ErrClosed
	}
	return l, nil
}

// acceptConns calls serve in a goroutine for each connection, until accept returns net.ErrClosed.
func (c *streamConnector) acceptConns(accept func() (*net.TCPConn, error), serve func(*net.TCPConn)) {
	for {
		conn, err := accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors
			select {
			case <-c.ctx.Done():
				return
			case <-time.After(minDialInterval):
			}
			continue
		}
		if !c.spawnTask(func() { serve(conn) }) {
			conn.Close()
		}
	}
}

// readRequest reads the request of a peer and passes it to serve.
func (c *streamConnector) readRequest(conn *net.TCPConn, serve func(adapter.StreamRequest)) {
	c.whileOpen(conn, func() {
		conn.SetDeadline(time.Now().Add(time.Duration(c.requestTimeout.Load())))
		h, err := readHandshake(conn, false)
		if err != nil {
			conn.Close()
			return
		}
		if h.Markers {
			_ = writeHandshake(conn, h.NewReject(nil))
			conn.Close()
			return
		}
		conn.SetDeadline(time.Time{})
		serve(&streamRequest{connector: c, conn: conn, request: h})
	})
}

// A streamRequest is a request for a connection manager.
type streamRequest struct {
	connector *streamConnector
	conn      *net.TCPConn
	request   iwarp.Handshake
}

// Private implements adapter.StreamRequest.
func (r *streamRequest) Private() []byte { return r.request.Private }

// Remote implements adapter.StreamRequest.
func (r *streamRequest) Remote() netip.AddrPort { return addrOf(r.conn.RemoteAddr()) }

// Reads implements adapter.StreamRequest.
func (r *streamRequest) Reads() adapter.Reads {
	if !r.request.Enhanced {
		return adapter.Reads{}
	}
	return adapter.Reads{Served: uint8(min(r.request.IRD, 255)), Issued: uint8(min(r.request.ORD, 255))}
}

// Accept implements adapter.StreamRequest.
func (r *streamRequest) Accept(reads adapter.Reads, private []byte) (adapter.StreamConn, error) {
	if link.HasInput(r.conn) { // its end: nothing may be sent before the reply
		r.conn.Close()
		return nil, adapter.ErrStreamEnded
	}
	reply, params, err := iwarp.AnswerRequest(&r.request, reads.Served, reads.Issued, !r.connector.dev.options.NoCRC, private)
	c := &streamConn{connector: r.connector, conn: r.conn, params: params, reply: &reply}
	if err != nil {
		_ = writeHandshake(r.conn, reply)
		r.conn.Close()
		return nil, err
	}
	return c, nil
}

// Reject implements adapter.StreamRequest.
func (r *streamRequest) Reject(private []byte) error {
	defer r.conn.Close()
	r.conn.SetDeadline(time.Now().Add(requestTimeout))
	return writeHandshake(r.conn, r.request.NewReject(private))
}

// Dial implements adapter.Streams.
func (c *streamConnector) Dial(ctx context.Context, from uint16, to netip.AddrPort, reads adapter.Reads, private []byte) (adapter.StreamConn, error) {
	conn, params, reply, err := c.dialAndRequest(ctx, net.Dialer{LocalAddr: &net.TCPAddr{Port: int(from)}}, to, reads.Served, reads.Issued, private)
	switch {
	case errors.Is(err, iwarp.ErrRejected):
		return nil, &adapter.StreamRejection{Private: reply}
	case err != nil:
		return nil, err
	}
	return &streamConn{connector: c, conn: conn, params: params, private: reply}, nil
}

// A streamConn is a connection that no queue pair has yet. That of a responder has not sent its reply,
// so that the peer sends nothing before the queue pair is ready.
type streamConn struct {
	connector *streamConnector
	conn      *net.TCPConn
	params    iwarp.Params
	reply     *iwarp.Handshake // to be sent, or nil
	private   []byte
}

// Private implements adapter.StreamConn.
func (c *streamConn) Private() []byte { return c.private }

// Local implements adapter.StreamConn.
func (c *streamConn) Local() netip.AddrPort { return addrOf(c.conn.LocalAddr()) }

// Remote implements adapter.StreamConn.
func (c *streamConn) Remote() netip.AddrPort { return addrOf(c.conn.RemoteAddr()) }

// Reads implements adapter.StreamConn.
func (c *streamConn) Reads() adapter.Reads {
	return adapter.Reads{Served: c.params.IRD, Issued: c.params.ORD}
}

// Claim implements adapter.StreamConn.
func (c *streamConn) Claim(qp verbs.QP) error {
	q, err := c.connector.ownQP(qp)
	if err != nil {
		return err
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.managed = true
	return nil
}

// Attach implements adapter.StreamConn.
func (c *streamConn) Attach(qp verbs.QP, ended func()) error {
	q, err := c.connector.ownQP(qp)
	if err != nil {
		return err
	}
	if c.reply != nil {
		c.conn.SetDeadline(time.Now().Add(requestTimeout))
		if err := writeHandshake(c.conn, *c.reply); err != nil {
			return err
		}
	}
	return q.adoptStream(context.Background(), c.conn, c.params, ended)
}

// Close implements adapter.StreamConn.
func (c *streamConn) Close() { c.conn.Close() }

// ownQP returns qp if it belongs to the device.
func (c *streamConnector) ownQP(qp verbs.QP) (*queuePair, error) {
	q, ok := qp.(*queuePair)
	if !ok || q.dev != c.dev {
		return nil, fmt.Errorf("%w: the queue pair belongs to another device", verbs.ErrDomain)
	}
	return q, nil
}

// addrOf returns the address of one end of a TCP connection.
func addrOf(a net.Addr) netip.AddrPort {
	at := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// startAccepting begins to accept requests on the port of the device.
func (c *streamConnector) startAccepting(tcp *link.TCP) {
	c.spawnTask(func() { c.acceptConns(tcp.Accept, c.serveRequest) })
}
