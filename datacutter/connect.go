package datacutter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The producer's end of a stream dials and sends hello. The consumer sends welcome when all its own consumers
// have sent it welcome, and all its producers have sent hello. So data starts to flow when every instance
// that it can reach is connected.

const (
	helloTimeout  = 10 * time.Second // bounds the wait for hello
	maxHandshakes = 64               // connections without hello, in addition to the expected ones
)

// newLink returns a link on conn. frames is nil if the link is only written to.
func (r *run) newLink(conn net.Conn, frames *frameReader, peer Instance) *link {
	return &link{ctx: r.ctx, conn: conn, frames: frames, peer: peer, grace: r.grace}
}

// dialCopy opens a connection to a copy of the consumer and sends hello.
func (r *run) dialCopy(to Instance, s slot) (*link, error) {
	conn, err := r.dialHost(to.Host)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	if err := r.trackConn(conn); err != nil {
		return nil, err
	}
	l := r.newLink(conn, newFrameReader(conn, 0), to)
	r.mu.Lock()
	r.links = append(r.links, l)
	r.mu.Unlock()
	if err := l.writeFrames(hello{r.plan.digest, s}.appendTo(nil)); err != nil {
		return l, l.peerReason(err)
	}
	return l, nil
}

// sendAbort reports the failure to a consumer that still waits for its connection.
func (r *run) sendAbort(to Instance, s slot, cause string) {
	if to.Host == r.host {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.grace)
	defer cancel()
	conn, err := r.network.Dial(ctx, r.addrs[to.Host])
	if err != nil {
		return // its host has failed as well
	}
	l := r.newLink(conn, nil, Instance{})
	if err := conn.SetDeadline(time.Now().Add(r.grace)); err == nil {
		_ = l.writeFrames(hello{r.plan.digest, s}.appendTo(nil)) // if it fails, so does the next call
	}
	l.closeWithAbort(cause)
}

// dialHost connects to a host. Instances on the same host are connected in memory.
func (r *run) dialHost(host string) (net.Conn, error) {
	if host != r.host {
		return r.network.Dial(r.ctx, r.addrs[host])
	}
	here, there := newPipe()
	if err := r.trackConn(there); err != nil {
		here.Close()
		return nil, err
	}
	r.handshakes.Go(func() { r.handleHello(there) })
	return here, nil
}

// acceptLoop accepts connections until all expected ones have arrived, or the run ends.
func (r *run) acceptLoop(tokens chan struct{}) {
	r.closeIfComplete()
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			if !r.isComplete() {
				r.fail(fmt.Errorf("accept: %w", err))
			}
			return
		}
		if r.trackConn(conn) != nil {
			return
		}
		select {
		case tokens <- struct{}{}:
			r.handshakes.Go(func() {
				r.handleHello(conn)
				<-tokens
			})
		default:
			r.rejectConn(conn, "too many concurrent handshakes")
		}
	}
}

// isComplete reports whether no more connections are expected.
func (r *run) isComplete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopping || len(r.slots) == 0
}

// closeIfComplete stops the listener when no more connections are expected.
func (r *run) closeIfComplete() {
	if r.isComplete() {
		r.Node.Close()
	}
}

// handleHello reads the hello of a connection and passes the connection to the instance that waits for it.
func (r *run) handleHello(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(helloTimeout)) // if it fails, so does the read
	b := make([]byte, frameHeader+helloLen)
	if _, err := io.ReadFull(conn, b); err != nil {
		r.rejectConn(conn, "no hello received")
		return
	}
	h, err := parseHello(b)
	if err != nil {
		r.rejectConn(conn, err.Error())
		return
	}
	if h.digest != r.plan.digest {
		r.rejectConn(conn, "host "+r.host+" has a different job: filters, streams, layout and works must be the same")
		return
	}
	if err := r.assignSlot(conn, h.slot); err != nil {
		r.rejectConn(conn, err.Error())
	}
	r.closeIfComplete()
}

// assignSlot passes a connection to the instance that waits for it.
func (r *run) assignSlot(conn net.Conn, s slot) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	to := r.slots[s]
	switch {
	case r.stopping:
		return context.Cause(r.ctx)
	case to == nil:
		return fmt.Errorf("host %s expects no connection of stream %d from copy %d to copy %d of group %d", r.host, s.stream, s.from, s.to, s.group)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	delete(r.slots, s)
	def := &r.plan.Group.Streams[s.stream]
	l := r.newLink(conn, newFrameReader(conn, def.UnitSize), r.plan.copies[role{s.group, def.From}][s.from])
	r.links = append(r.links, l)
	to <- l // does not block: the channel has capacity 1
	return nil
}

// rejectConn closes a connection after sending the reason.
func (r *run) rejectConn(conn net.Conn, cause string) {
	r.mu.Lock()
	if !r.stopping {
		r.rejected++
		r.lastRejection = cause
	}
	r.mu.Unlock()
	l := r.newLink(conn, nil, Instance{})
	l.closeWithAbort(cause)
	r.dropConn(conn)
}

// connectStreams connects the instance's streams, and returns when data can flow.
func (i *instance) connectStreams() error {
	for _, out := range i.outputs {
		for c := range out.links {
			l, err := i.run.dialCopy(out.to[c], out.slotFor(i.Instance, c))
			if err != nil {
				return &StreamError{Stream: out.stream.Name, To: true, Peer: out.to[c], Err: err}
			}
			out.links[c] = l
		}
	}
	for _, out := range i.outputs {
		for c, l := range out.links {
			if err := l.expectFrame(kindWelcome); err != nil {
				return out.failStream(c, i.run.wrapConnectError(err))
			}
		}
	}
	for _, in := range i.inputs {
		for c, from := range in.from {
			select {
			case in.links[c] = <-in.slots[c]:
			case <-i.run.ctx.Done():
				return &StreamError{Stream: in.stream.Name, Peer: from, Err: i.run.wrapConnectError(context.Cause(i.run.ctx))}
			}
		}
	}
	for _, in := range i.inputs {
		for _, l := range in.links {
			if err := l.writeFrames(appendFrame(nil, kindWelcome, nil)); err != nil {
				return in.failStream(l, l.peerReason(err))
			}
		}
	}
	return nil
}

// wrapConnectError adds to err that the instance waited for a connection, and which other connections were
// rejected.
func (r *run) wrapConnectError(err error) error {
	if errors.As(err, new(*RemoteError)) || errors.As(err, new(*FilterError)) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rejected > 0 {
		return fmt.Errorf("wait for connection: %w (%d connections rejected, the last one: %s)", err, r.rejected, r.lastRejection)
	}
	return fmt.Errorf("wait for connection: %w", err)
}
