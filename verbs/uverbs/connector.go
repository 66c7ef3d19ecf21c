//go:build linux

package uverbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/verbs"
)

// A connector is an adapter.Connector: the kernel's connection manager, bound to a device's address.
type connector struct {
	dev  *device
	file *cmFile
	addr netip.Addr
}

// OpenConnector implements adapter.ConnectorDevice.
func (d *device) OpenConnector() (adapter.Connector, error) {
	entry, err := d.QueryGID(1, 0)
	if err != nil {
		return nil, err
	}
	file, err := d.system.openConnectionManager()
	if err != nil {
		return nil, err
	}
	return &connector{dev: d, file: file, addr: entry.GID.Addr()}, nil
}

// Close implements adapter.Connector.
func (c *connector) Close() error { return c.file.close() }

// A cmListener is an adapter.StreamListener.
type cmListener struct {
	ep    *cmEndpoint
	local netip.AddrPort
	once  sync.Once
}

// Listen implements adapter.Connector.
func (c *connector) Listen(space, port uint16, backlog int, serve func(adapter.ConnectorConn)) (adapter.StreamListener, error) {
	ep, err := c.file.newEndpoint(space, verbs.RC)
	if err != nil {
		return nil, err
	}
	l := &cmListener{ep: ep}
	if err = ep.bind(netip.AddrPortFrom(c.addr, port)); err == nil {
		if l.local, _, err = ep.addresses(); err == nil {
			err = executeCM(c.file, cmCmdListen, &cmListen{ep.id, uint32(backlog)}, nil, &none{})
		}
	}
	if err != nil {
		ep.destroy()
		return nil, err
	}
	ep.setHandler(func(e *cmEvent) {
		if e != nil && e.event == cmEventConnectRequest {
			c.serveRequest(e, serve)
		}
	})
	return l, nil
}

// serveRequest passes a request on. The kernel has created its identifier.
func (c *connector) serveRequest(e *cmEvent, serve func(adapter.ConnectorConn)) {
	ep := &cmEndpoint{f: c.file, id: e.id, wake: make(chan struct{}, 1)}
	if c.file.addEndpoint(ep) != nil {
		return // the file is closed
	}
	conn := &cmConn{c: c, ep: ep, peer: decodeParam(&e.param)}
	var err error
	if conn.local, conn.remote, err = ep.addresses(); err != nil {
		ep.destroy()
		return
	}
	serve(conn)
}

// Addr implements adapter.StreamListener.
func (l *cmListener) Addr() netip.AddrPort { return l.local }

// Close implements adapter.StreamListener.
func (l *cmListener) Close() error {
	l.once.Do(l.ep.destroy)
	return nil
}

// resolveTimeout bounds the resolution of an address, and of a route.
const resolveTimeout = 2 * time.Second

// Resolve implements adapter.Connector.
func (c *connector) Resolve(ctx context.Context, space uint16, to netip.AddrPort, localPort uint16, kind verbs.QPType) (_ adapter.ConnectorConn, err error) {
	ep, err := c.file.newEndpoint(space, kind)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			ep.destroy()
		}
	}()
	body := cmResolveAddr{id: ep.id, timeout: uint32(resolveTimeout.Milliseconds())}
	body.sourceSize = body.sourceAddr.encode(netip.AddrPortFrom(c.addr, localPort))
	body.destinationSize = body.destinationAddr.encode(to)
	if err := executeCM(c.file, cmCmdResolveAddr, &body, nil, &none{}); err != nil {
		return nil, fmt.Errorf("resolve address: %w", err)
	}
	if _, err := ep.expect(ctx, cmEventAddrResolved); err != nil {
		return nil, err
	}
	if err := executeCM(c.file, cmCmdResolveRoute, &cmResolveRoute{ep.id, uint32(resolveTimeout.Milliseconds())}, nil, &none{}); err != nil {
		return nil, fmt.Errorf("resolve route: %w", err)
	}
	if _, err := ep.expect(ctx, cmEventRouteResolved); err != nil {
		return nil, err
	}
	conn := &cmConn{c: c, ep: ep}
	conn.local, conn.remote, err = ep.addresses()
	return conn, err
}

// expect waits for an event. Another one that ends the attempt is an error.
func (ep *cmEndpoint) expect(ctx context.Context, want uint32) (cmEvent, error) {
	e, err := ep.next(ctx)
	if err != nil {
		return e, err
	}
	if e.event == want {
		return e, nil
	}
	status := int32(e.status)
	cause := errors.New("no cause given")
	if status < 0 {
		cause = unix.Errno(-status)
	}
	switch e.event {
	case cmEventRejected:
		return e, &adapter.ConnectorRejection{Reason: uint16(status), Private: decodeParam(&e.param).Private}
	case cmEventAddrError:
		return e, fmt.Errorf("resolve address: %w", cause)
	case cmEventRouteError:
		return e, fmt.Errorf("resolve route: %w", cause)
	case cmEventConnectError:
		return e, fmt.Errorf("connect: %w", cause)
	case cmEventUnreachable:
		return e, fmt.Errorf("no reply: %w", cmp.Or[error](cause, unix.ETIMEDOUT))
	case cmEventDeviceRemoval:
		return e, fmt.Errorf("%w: the kernel has removed the device", verbs.ErrClosed)
	}
	return e, fmt.Errorf("event %d of the kernel, status %d, before event %d", e.event, status, want)
}

// A cmConn is an adapter.ConnectorConn.
type cmConn struct {
	c             *connector
	ep            *cmEndpoint
	local, remote netip.AddrPort
	peer          adapter.ConnectorParam
	closeOnce     sync.Once
}

// Local implements adapter.ConnectorConn.
func (c *cmConn) Local() netip.AddrPort { return c.local }

// Remote implements adapter.ConnectorConn.
func (c *cmConn) Remote() netip.AddrPort { return c.remote }

// Peer implements adapter.ConnectorConn.
func (c *cmConn) Peer() adapter.ConnectorParam { return c.peer }

// decodeParam returns the parameters of an event, with memory of its own.
func decodeParam(p *cmConnParam) adapter.ConnectorParam {
	return adapter.ConnectorParam{
		QPN: p.number, Reads: adapter.Reads{Served: p.served, Issued: p.issued}, FlowControl: p.flowControl != 0, SRQ: p.srq != 0,
		Retries: p.retries, RNRRetries: p.rnrRetries, Private: append([]byte(nil), p.private[:p.privateLength]...),
	}
}

// encodeParam undoes decodeParam.
func encodeParam(p *adapter.ConnectorParam) cmConnParam {
	out := cmConnParam{
		number: p.QPN, served: p.Reads.Served, issued: p.Reads.Issued, retries: p.Retries, rnrRetries: p.RNRRetries, set: 1,
		privateLength: uint8(copy(make([]byte, cmPrivateData-1), p.Private)),
	}
	copy(out.private[:], p.Private)
	if p.FlowControl {
		out.flowControl = 1
	}
	if p.SRQ {
		out.srq = 1
	}
	return out
}

// Connect implements adapter.ConnectorConn.
func (c *cmConn) Connect(ctx context.Context, p adapter.ConnectorParam) error {
	if p.AckTimeout > 0 {
		if err := c.setAckTimeout(p.AckTimeout); err != nil {
			return err
		}
	}
	if err := executeCM(c.c.file, cmCmdConnect, &cmConnect{param: encodeParam(&p), id: c.ep.id}, nil, &none{}); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	e, err := c.ep.expect(ctx, cmEventConnectResponse)
	if err == nil {
		c.peer = decodeParam(&e.param)
	}
	return err
}

// setAckTimeout sets the local ACK timeout that the request has for both ends.
func (c *cmConn) setAckTimeout(d time.Duration) error {
	code := new(uint8)
	for *code < 31 && verbs.AckTimeout(*code) < d {
		*code++
	}
	body := cmSetOption{value: uint64(uintptr(unsafe.Pointer(code))), id: c.ep.id, level: cmOptionLevelID, option: cmOptionAckTimeout, length: 1}
	return executeCM(c.c.file, cmCmdSetOption, &body, nil, &none{})
}

// Establish implements adapter.ConnectorConn.
func (c *cmConn) Establish() error {
	return executeCM(c.c.file, cmCmdAccept, &cmAccept{uid: c.ep.uid, id: c.ep.id}, nil, &none{})
}

// Accept implements adapter.ConnectorConn.
func (c *cmConn) Accept(ctx context.Context, p adapter.ConnectorParam) error {
	if err := executeCM(c.c.file, cmCmdAccept, &cmAccept{uid: c.ep.uid, param: encodeParam(&p), id: c.ep.id}, nil, &none{}); err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	_, err := c.ep.expect(ctx, cmEventEstablished)
	return err
}

// Reject implements adapter.ConnectorConn.
func (c *cmConn) Reject(private []byte) error {
	body := cmReject{id: c.ep.id, privateLength: uint8(len(private)), reason: rejectConsumer}
	copy(body.private[:], private)
	err := executeCM(c.c.file, cmCmdReject, &body, nil, &none{})
	if errors.Is(err, unix.EINVAL) { // a kernel before 5.8, which has no reason there
		body.reason = 0
		err = executeCM(c.c.file, cmCmdReject, &body, nil, &none{})
	}
	c.Close()
	return err
}

// rejectConsumer is the reason IB_CM_REJ_CONSUMER_DEFINED.
const rejectConsumer = 28

// Attr implements adapter.ConnectorConn.
func (c *cmConn) Attr(to verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	body := cmInitQPAttr{id: c.ep.id, state: uint32(to)}
	var r cmQPAttr
	if err := executeCM(c.c.file, cmCmdInitQPAttr, &body, &body.response, &r); err != nil {
		return verbs.QPAttr{}, 0, fmt.Errorf("attributes for %v: %w", to, err)
	}
	h := &r.destination
	return verbs.QPAttr{
		State: to, PathMTU: verbs.MTU(r.mtu), QKey: r.qkey, RQPSN: r.recvPSN, SQPSN: r.sendPSN, DestQPN: r.peer,
		AccessFlags: verbs.AccessFlags(r.access), PKeyIndex: r.pkey, PortNum: r.port, MaxRdAtomic: r.maxReads, MaxDestRdAtomic: r.maxPeerReads,
		MinRNRTimer: r.rnrTimer, Timeout: r.timeout, RetryCnt: r.retries, RNRRetry: r.rnrRetries,
		AV: verbs.AHAttr{DGID: h.dgid, SGIDIndex: c.c.dev.kernelGIDIndex(int(h.sgidIndex)), FlowLabel: h.flowLabel, HopLimit: h.hopLimit,
			TrafficClass: h.trafficClass, SL: h.sl, PortNum: h.port},
	}, verbs.QPAttrMask(r.mask) & knownAttrs, nil
}

// OnEnd implements adapter.ConnectorConn.
func (c *cmConn) OnEnd(ended func(err error)) {
	var once sync.Once
	end := func(err error) { once.Do(func() { go ended(err) }) }
	c.ep.setHandler(func(e *cmEvent) {
		switch {
		case e == nil:
			end(nil)
		case e.event == cmEventDisconnected && int32(e.status) < 0:
			end(unix.Errno(-int32(e.status)))
		case e.event == cmEventDeviceRemoval:
			end(fmt.Errorf("%w: the kernel has removed the device", verbs.ErrClosed))
		case e.event == cmEventDisconnected, e.event == cmEventTimewaitExit:
			end(nil)
		}
	})
}

// Disconnect implements adapter.ConnectorConn.
func (c *cmConn) Disconnect() error {
	return executeCM(c.c.file, cmCmdDisconnect, &cmID{c.ep.id}, nil, &none{})
}

// Close implements adapter.ConnectorConn.
func (c *cmConn) Close() { c.closeOnce.Do(c.ep.destroy) }
