package sdp

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/sdp/protocol"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// Dialer says how to dial. The zero value does as the stack's options say.
type Dialer struct {
	Design  *Design // instead of the stack's
	UDPPort uint16  // of the peer's adapter, if it is not 4791
}

// Dial connects to a listener at an address like "192.0.2.1:7471": the peer's
// adapter and a port of SDP, a number or the name of a service. The network is "sdp";
// that of TCP will do.
//
// What the system does not send, or a host returns because the port is closed, fails within
// 50 ms with the system's error, for example syscall.ECONNREFUSED or ENETUNREACH.
//
// Where nobody answers it asks 16 times, and fails with syscall.ETIMEDOUT after about
// 10 s. Where an adapter answers, and the program behind it does not accept, that is after
// half a minute. DialContext gives up sooner; a manager of your own with other [cm.Options]
// asks less often.
func (s *Stack) Dial(network, address string) (net.Conn, error) {
	return s.DialContext(context.Background(), network, address)
}

// DialContext is Dial with a context, which counts until the connection is there:
// what http.Transport wants. One that ends first is in the error, which says who had
// not answered until then: the adapter, or the program behind it.
func (s *Stack) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := s.resolve(ctx, network, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "sdp", Err: err}
	}
	c, err := s.DialAddr(ctx, to, Dialer{})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// DialAddr connects to a listener. If the peer's SDP knows nothing of the flow
// control asked for, the connection has that of the standard.
func (s *Stack) DialAddr(ctx context.Context, to netip.AddrPort, d Dialer) (*Conn, error) {
	c, err := s.dial(ctx, to, d)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: Addr{to}, Err: err}
	}
	return c, nil
}

func (s *Stack) dial(ctx context.Context, to netip.AddrPort, d Dialer) (c *Conn, err error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.opening.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	cfg := s.options.config()
	if d.Design != nil {
		if cfg = cfg.With(*d.Design); cfg.Validate() != nil {
			return nil, cfg.Validate()
		}
	}
	if c, err = s.connection(&cfg); err != nil {
		return nil, err
	}
	local := netip.AddrPortFrom(s.cm.Addr().Addr(), s.ephemeral())
	adapter := netip.AddrPortFrom(to.Addr().Unmap(), cmp.Or(d.UDPPort, usualPort))
	if err := ctx.Err(); err != nil {
		c.free()
		return nil, s.ended(notAsked(err, adapter))
	}
	began := time.Now()
	conn, err := s.cm.Dial(ctx, to, cm.DialOptions{
		ConnectOptions: connectOptions(),
		QP:             c.qp, Prepare: c.prepare, UDPPort: d.UDPPort, PortSpace: cm.SDP, LocalPort: local.Port(),
		PrivateData: cfg.Hello(local, to.Addr()).Append(nil),
	})
	if err != nil {
		c.free()
		return nil, s.ended(dialError(err, adapter, time.Since(began)))
	}
	c.establish(conn)
	ack, err := bsdh.ParseHelloAck(conn.PrivateData())
	if err != nil {
		c.abort()
		return nil, err
	}
	peer, err := cfg.PeerOfAck(&ack)
	if err != nil {
		c.abort()
		return nil, err
	}
	c.start(peer)
	return c, nil
}

// ended is err, unless it came of the end of the stack.
func (s *Stack) ended(err error) error {
	if s.ctx.Err() != nil {
		return errClosedStack
	}
	return err
}

// connectOptions are those of all connections. A receiver that is out of
// receives is asked again soon, and for ever: it may be computing.
func connectOptions() verbs.ConnectOptions {
	return verbs.ConnectOptions{RNRRetry: 7, MinRNRTimer: 1, MaxRdAtomic: 4, MaxDestRdAtomic: 4}
}

// start makes the connection work.
func (c *Conn) start(p protocol.Peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.design = p.Design
	c.core.Start(p)
	c.post()
	c.watchPeer(c.stack.options.KeepAlive)
	c.cmConn.AfterDone(c.disconnected)
	c.leave()
}

// disconnected is what happens when the peer, or its host, has ended the
// connection.
func (c *Conn) disconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if c.pumping {
		// Its receives are flushed. If there is none this one will be.
		_, _ = c.qp.PostRecv([]verbs.RecvWR{{}})
		return
	}
	c.poll() // what came before
	c.core.Cut(c.cmConn.Err())
	c.notify()
	c.after()
}

// ephemeral is a port of ours, for the peer to see.
func (s *Stack) ephemeral() uint16 { return uint16(49152 + s.ports.Add(1)%16384) }
