package datacutter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The producer's end of a stream dials and says hello; the consumer says
// welcome when all its own consumers have said it to it, and all its producers
// hello. So data begins to flow when everything it can reach is connected.

const (
	helloTime   = 10 * time.Second // within which a connection must say hello
	maxGreeters = 64               // connections without hello, beyond those that are to come
)

func (r *run) newLink(conn net.Conn, frames *frameReader, peer Instance) *link {
	return &link{ctx: r.ctx, conn: conn, frames: frames, peer: peer, grace: r.grace}
}

// dial opens a connection to the consumer's copy and says hello.
func (r *run) dial(to Instance, s slot) (*link, error) {
	conn, err := r.reach(to.Host)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	if err := r.track(conn); err != nil {
		return nil, err
	}
	l := r.newLink(conn, newFrameReader(conn, 0), to)
	r.mu.Lock()
	r.links = append(r.links, l)
	r.mu.Unlock()
	if err := l.write(hello{r.plan.digest, s}.append(nil)); err != nil {
		return l, l.why(err)
	}
	return l, nil
}

// tell tells a consumer that still waits for its connection why there is to be
// none.
func (r *run) tell(to Instance, s slot, why string) {
	if to.Host == r.me {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.grace)
	defer cancel()
	conn, err := r.network.Dial(ctx, r.addrs[to.Host])
	if err != nil {
		return // it is gone as well
	}
	l := r.newLink(conn, nil, Instance{})
	if err := conn.SetDeadline(time.Now().Add(r.grace)); err == nil {
		_ = l.write(hello{r.plan.digest, s}.append(nil)) // where that fails, so does the next
	}
	l.farewell(why)
}

// reach connects to a host. Instances on one host are joined in memory.
func (r *run) reach(host string) (net.Conn, error) {
	if host != r.me {
		return r.network.Dial(r.ctx, r.addrs[host])
	}
	here, there := pipe()
	if err := r.track(there); err != nil {
		here.Close()
		return nil, err
	}
	r.greeters.Go(func() { r.greet(there) })
	return here, nil
}

// accept takes connections until the run has all that it wants, or ends.
func (r *run) accept(tokens chan struct{}) {
	r.closeIfComplete()
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			if !r.complete() {
				r.fail(fmt.Errorf("accept: %w", err))
			}
			return
		}
		if r.track(conn) != nil {
			return
		}
		select {
		case tokens <- struct{}{}:
			r.greeters.Go(func() {
				r.greet(conn)
				<-tokens
			})
		default:
			r.refuse(conn, "too many connections at once")
		}
	}
}

// complete reports whether no more connections are wanted.
func (r *run) complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cut || len(r.slots) == 0
}

func (r *run) closeIfComplete() {
	if r.complete() {
		r.listener.Close()
	}
}

// greet takes the hello of a connection and gives the connection to the
// instance that waits for it.
func (r *run) greet(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(helloTime)) // where that fails, so does the read
	b := make([]byte, frameHeader+helloLen)
	if _, err := io.ReadFull(conn, b); err != nil {
		r.refuse(conn, "no hello came")
		return
	}
	h, err := parseHello(b)
	if err != nil {
		r.refuse(conn, err.Error())
		return
	}
	if h.digest != r.plan.digest {
		r.refuse(conn, "host "+r.me+" has a different job: filters, streams, layout and works must be the same")
		return
	}
	if err := r.admit(conn, h.slot); err != nil {
		r.refuse(conn, err.Error())
	}
	r.closeIfComplete()
}

// admit puts a connection into its slot.
func (r *run) admit(conn net.Conn, s slot) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	to := r.slots[s]
	switch {
	case r.cut:
		return context.Cause(r.ctx)
	case to == nil:
		return fmt.Errorf("host %s does not wait for a connection of stream %d from copy %d to copy %d of group %d", r.me, s.stream, s.from, s.to, s.group)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	delete(r.slots, s)
	def := &r.plan.Group.Streams[s.stream]
	l := r.newLink(conn, newFrameReader(conn, def.UnitSize), r.plan.copies[role{s.group, def.From}][s.from])
	r.links = append(r.links, l)
	to <- l // has room
	return nil
}

// refuse closes a connection and says why.
func (r *run) refuse(conn net.Conn, why string) {
	r.mu.Lock()
	if !r.cut {
		r.strangers++
		r.stranger = why
	}
	r.mu.Unlock()
	l := r.newLink(conn, nil, Instance{})
	l.farewell(why)
	r.drop(conn)
}

// connect connects the instance's streams, and returns when data can flow.
func (i *instance) connect() error {
	for _, out := range i.outputs {
		for c := range out.links {
			l, err := i.run.dial(out.to[c], out.slot(i.Instance, c))
			if err != nil {
				return &StreamError{Stream: out.stream.Name, To: true, Peer: out.to[c], Err: err}
			}
			out.links[c] = l
		}
	}
	for _, out := range i.outputs {
		for c, l := range out.links {
			if err := l.expect(kindWelcome); err != nil {
				return out.fail(c, i.run.waited(err))
			}
		}
	}
	for _, in := range i.inputs {
		for c, from := range in.from {
			select {
			case in.links[c] = <-in.slots[c]:
			case <-i.run.ctx.Done():
				return &StreamError{Stream: in.stream.Name, Peer: from, Err: i.run.waited(context.Cause(i.run.ctx))}
			}
		}
	}
	for _, in := range i.inputs {
		for _, l := range in.links {
			if err := l.write(appendFrame(nil, kindWelcome, nil)); err != nil {
				return in.fail(l, l.why(err))
			}
		}
	}
	return nil
}

// waited says that an error came while the instance waited for a connection,
// and which others came instead.
func (r *run) waited(err error) error {
	if errors.As(err, new(*RemoteError)) || errors.As(err, new(*FilterError)) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.strangers > 0 {
		return fmt.Errorf("waiting for its connection: %w (%d were refused, the last: %s)", err, r.strangers, r.stranger)
	}
	return fmt.Errorf("waiting for its connection: %w", err)
}
