package rnic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/iwarp"
	"github.com/softrnic/softrnic/verbs"
)

// Two queue pairs that know each other's endpoints connect without a connection manager: the end
// with the smaller address, port and number dials the TCP port of the other one's device. The private
// data of the request has the numbers of both, so that the peer finds the queue pair; it waits until
// that is in StateRTR.

// endpointMagic begins the private data of such a request: 12 bytes with the port of the sender's
// device and the two queue pair numbers follow.
const (
	endpointMagic   = "softrnic"
	endpointDataLen = len(endpointMagic) + 12
)

// Timeouts of the set-up of a connection.
const (
	requestTimeout  = 10 * time.Second // from the TCP connection to the request
	replyTimeout    = time.Minute      // from the request to the reply
	minDialInterval = 20 * time.Millisecond
	maxDialInterval = time.Second
	dialTimeout     = time.Second // of an attempt: a lost SYN would be repeated after 1, 3 and 7 s only
)

// A streamID names one end of a connection between queue pairs.
type streamID struct {
	addr netip.AddrPort // of the device
	qpn  uint32
}

func (a streamID) isBefore(b streamID) bool {
	if c := a.addr.Compare(b.addr); c != 0 {
		return c < 0
	}
	return a.qpn < b.qpn
}

// A streamConnector sets up the connections of a device.
type streamConnector struct {
	dev   *Device
	ctx   context.Context // ends with the device
	stop  context.CancelFunc
	group sync.WaitGroup

	managed        atomic.Bool  // there is a connection manager
	requestTimeout atomic.Int64 // nanoseconds, see requestTimeout

	mu      sync.Mutex
	waiting map[uint32][]*waitingRequest // requests by the number of the queue pair they are for
	closed  bool
}

// A waitingRequest is a request that waits for its queue pair to be in StateRTR.
type waitingRequest struct {
	from     streamID
	conn     *net.TCPConn
	accepted chan acceptedQP // capacity 1: the queue pair that accepts
}

// An acceptedQP is a queue pair that accepts a request, until ctx ends: it may be reset meanwhile.
type acceptedQP struct {
	*queuePair
	ctx context.Context
}

func newStreamConnector(d *Device) *streamConnector {
	c := &streamConnector{dev: d, waiting: make(map[uint32][]*waitingRequest)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.requestTimeout.Store(int64(requestTimeout))
	return c
}

// spawnTask runs f in a goroutine, for which close waits. It reports false after close.
func (c *streamConnector) spawnTask(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.group.Go(f)
	return true
}

// close ends all set-ups. The link no longer accepts connections.
func (c *streamConnector) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.group.Wait()
}

// whileOpen closes conn when the device is closed before f returns.
func (c *streamConnector) whileOpen(conn net.Conn, f func()) {
	stop := context.AfterFunc(c.ctx, func() { conn.Close() })
	defer stop()
	f()
}

// readHandshake reads the frame of the peer, and nothing behind it.
func readHandshake(conn net.Conn, reply bool) (iwarp.Handshake, error) {
	buf := make([]byte, iwarp.HandshakeLen, iwarp.HandshakeLen+iwarp.MaxPrivateData+4)
	if _, err := io.ReadFull(conn, buf); err != nil {
		return iwarp.Handshake{}, err
	}
	h, n, err := iwarp.ParseHandshake(buf, reply)
	if errors.Is(err, iwarp.ErrShort) {
		buf = buf[:n]
		if _, err := io.ReadFull(conn, buf[iwarp.HandshakeLen:]); err != nil {
			return h, err
		}
		h, _, err = iwarp.ParseHandshake(buf, reply)
	}
	return h, err
}

// writeHandshake writes a frame.
func writeHandshake(conn net.Conn, h iwarp.Handshake) error {
	_, err := conn.Write(h.AppendTo(nil))
	return err
}

// serveRequest handles a connection to the port of the device until it is adopted or closed.
func (c *streamConnector) serveRequest(conn *net.TCPConn) {
	defer conn.Close() // without effect if it was adopted
	c.whileOpen(conn, func() {
		conn.SetDeadline(time.Now().Add(time.Duration(c.requestTimeout.Load())))
		q, err := readHandshake(conn, false)
		if err != nil {
			return
		}
		p := q.Private
		if len(p) != endpointDataLen || !bytes.HasPrefix(p, []byte(endpointMagic)) {
			_ = writeHandshake(conn, q.NewReject(nil)) // this port has no application
			return
		}
		p = p[len(endpointMagic):]
		remote := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap().WithZone("")
		from := streamID{netip.AddrPortFrom(remote, uint16(binary.BigEndian.Uint32(p))), binary.BigEndian.Uint32(p[4:])}
		to := c.waitForQP(conn, from, binary.BigEndian.Uint32(p[8:]))
		if to.queuePair == nil {
			return
		}
		conn.SetDeadline(time.Now().Add(requestTimeout))
		if err := to.acceptStream(to.ctx, conn, &q, nil); err != nil && to.ctx.Err() == nil {
			to.failConnecting(err)
		}
	})
}

// waitForQP waits until the queue pair num is ready to be connected to from, and returns it; none if the
// peer gives up.
func (c *streamConnector) waitForQP(conn *net.TCPConn, from streamID, num uint32) acceptedQP {
	w := &waitingRequest{from: from, conn: conn, accepted: make(chan acceptedQP, 1)}
	conn.SetReadDeadline(time.Now().Add(replyTimeout))
	c.mu.Lock()
	c.waiting[num] = append(c.waiting[num], w)
	c.mu.Unlock()
	if q := c.dev.qps.lookup(num); q != nil {
		q.shard.mu.Lock()
		c.matchRequests(q)
		q.shard.mu.Unlock()
	}
	conn.Read(make([]byte, 1)) // the peer sends nothing: this ends by matchRequests, or with the connection
	c.mu.Lock()
	list := c.waiting[num]
	for i := range list {
		if list[i] == w {
			c.waiting[num] = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(c.waiting[num]) == 0 {
		delete(c.waiting, num)
	}
	c.mu.Unlock()
	select {
	case q := <-w.accepted:
		return q
	default:
		return acceptedQP{}
	}
}

// matchRequests passes q to the request that waits for it. The lock of its shard is held.
func (c *streamConnector) matchRequests(q *queuePair) {
	if q.closed || !q.awaitsStream {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, remote := q.streamIDs()
	for _, w := range c.waiting[q.num] {
		if w.from == remote {
			q.awaitsStream = false
			w.accepted <- acceptedQP{q, q.connecting}
			w.conn.SetReadDeadline(time.Unix(1, 0))
			return
		}
	}
}

// streamIDs returns the two ends of the connection of q, which is in StateRTR. The lock of the shard is
// held.
func (q *queuePair) streamIDs() (local, remote streamID) {
	addr := q.dev.addr
	local = streamID{netip.AddrPortFrom(addr.Addr().WithZone(""), addr.Port()), q.num}
	return local, streamID{q.core.PeerPath().Dst, q.core.Query().DestQPN}
}

// errConnectedToItself is the failure of a queue pair whose peer it is itself.
var errConnectedToItself = errors.New("connect: a TCP connection has two ends, and a queue pair is one of them")

// beginConnecting starts to connect q, which has entered StateRTR. The lock of the shard is held.
func (q *queuePair) beginConnecting() {
	c := q.dev.connector
	local, remote := q.streamIDs()
	if local == remote {
		q.core.FailConnecting(q.dev.now(), errConnectedToItself)
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	q.connecting, q.cancelConnecting = ctx, cancel
	if !local.isBefore(remote) {
		q.awaitsStream = true
		c.matchRequests(q)
		return
	}
	c.spawnTask(func() { q.dialPeer(ctx, local, remote) })
}

// stopConnecting ends the attempt to connect q. The lock of the shard is held.
func (q *queuePair) stopConnecting() {
	q.awaitsStream = false
	if q.cancelConnecting != nil {
		q.cancelConnecting()
		q.connecting, q.cancelConnecting = nil, nil
	}
}

// dialPeer connects q to its peer, and tries again until ctx ends.
func (q *queuePair) dialPeer(ctx context.Context, local, remote streamID) {
	private := []byte(endpointMagic)
	private = binary.BigEndian.AppendUint32(private, uint32(local.addr.Port()))
	private = binary.BigEndian.AppendUint32(private, local.qpn)
	private = binary.BigEndian.AppendUint32(private, remote.qpn)
	for wait := minDialInterval; ctx.Err() == nil; wait = min(2*wait, maxDialInterval) {
		err := q.dialStream(ctx, remote.addr, private)
		if err == nil {
			return
		}
		if errors.Is(err, iwarp.ErrRejected) || errors.Is(err, iwarp.ErrReads) {
			q.failConnecting(fmt.Errorf("%v: %w", remote.addr, err))
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// readLimits returns the numbers of READs and atomics that q serves and issues at a time. In StateRTR
// the second is not set yet, and Modify bounds it later.
func (q *queuePair) readLimits() (ird, ord uint8) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	a := q.core.Query()
	if ord = a.MaxRdAtomic; a.State == verbs.StateRTR {
		ord = maxStreamReadsAtOnce
	}
	return a.MaxDestRdAtomic, ord
}

// maxStreamReadsAtOnce is the number of outstanding READs that a queue pair asks the peer to serve if it
// has no number of its own yet.
const maxStreamReadsAtOnce = 128

// dialStream connects q to a TCP port.
func (q *queuePair) dialStream(ctx context.Context, to netip.AddrPort, private []byte) error {
	ird, ord := q.readLimits()
	conn, params, _, err := q.dev.connector.dialAndRequest(ctx, net.Dialer{Timeout: dialTimeout}, to, ird, ord, private)
	if err != nil {
		return err
	}
	defer conn.Close() // without effect if it was adopted
	return q.adoptStream(ctx, conn, params, nil)
}

// dialAndRequest dials a TCP port and sets up a connection on it. The dialer has a port to dial from,
// and a timeout, or zeros. It returns the private data of the
// reply, also of one that rejects the request.
func (c *streamConnector) dialAndRequest(ctx context.Context, dialer net.Dialer, to netip.AddrPort, ird, ord uint8, private []byte) (_ *net.TCPConn, p iwarp.Params, replied []byte, err error) {
	d := c.dev
	from := &net.TCPAddr{IP: d.addr.Addr().AsSlice(), Zone: d.addr.Addr().Zone()}
	if a, ok := dialer.LocalAddr.(*net.TCPAddr); ok {
		from.Port = a.Port
	}
	dialer.LocalAddr = from
	if to.Addr().Is6() && to.Addr().IsLinkLocalUnicast() {
		to = netip.AddrPortFrom(to.Addr().WithZone(d.caps.Interface), to.Port())
	}
	netConn, err := dialer.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, p, nil, err
	}
	conn := netConn.(*net.TCPConn)
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	for _, ends := range []context.Context{ctx, c.ctx} {
		stop := context.AfterFunc(ends, func() { conn.Close() })
		defer stop()
	}
	conn.SetDeadline(time.Now().Add(replyTimeout))
	request := iwarp.NewRequest(ird, ord, !d.options.NoCRC, private)
	if err := writeHandshake(conn, request); err != nil {
		return nil, p, nil, contextError(ctx, err)
	}
	reply, err := readHandshake(conn, true)
	if err != nil {
		return nil, p, nil, contextError(ctx, err)
	}
	p, err = iwarp.FinishRequest(&request, &reply)
	return conn, p, reply.Private, err
}

// contextError returns the error of ctx if that has ended, and err otherwise.
func contextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// acceptStream answers a request and attaches its connection to q.
func (q *queuePair) acceptStream(ctx context.Context, conn *net.TCPConn, request *iwarp.Handshake, private []byte) error {
	ird, ord := q.readLimits()
	reply, params, err := iwarp.AnswerRequest(request, ird, ord, !q.dev.options.NoCRC, private)
	if errWrite := writeHandshake(conn, reply); errWrite != nil || err != nil {
		return errors.Join(err, errWrite)
	}
	return q.adoptStream(ctx, conn, params, nil)
}

// adoptStream attaches a connection to q after its set-up, unless ctx has ended, and makes ended be
// called when it has ended.
func (q *queuePair) adoptStream(ctx context.Context, conn *net.TCPConn, p iwarp.Params, ended func()) error {
	s := q.shard
	s.mu.Lock()
	defer s.unlock()
	if err := cmp.Or(q.checkUsable("connect"), ctx.Err()); err != nil {
		return err
	}
	stream, err := s.streams.tcp.Adopt(conn, q.num)
	if err != nil {
		return err
	}
	q.onStreamEnd = ended
	if err := s.attachStream(q, stream, p); err != nil {
		q.onStreamEnd = nil
		stream.Close()
		return err
	}
	return nil
}

// failConnecting ends q because it cannot be connected.
func (q *queuePair) failConnecting(err error) {
	s := q.shard
	s.mu.Lock()
	defer s.unlock()
	if q.closed || q.stream != nil || q.core.State() == verbs.StateErr || q.core.State() == verbs.StateReset {
		return
	}
	now := q.dev.now()
	q.core.FailConnecting(now, err)
	s.drainStream(q, now)
}
