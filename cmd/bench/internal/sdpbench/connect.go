package sdpbench

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// listenInfo is the address of the listener of rank 1.
type listenInfo struct {
	Addr    netip.AddrPort
	UDPPort uint16 // of its adapter
}

// connectPeer connects the two processes. Rank 1 listens. The caller must call disconnect.
func (e *side) connectPeer(ctx context.Context, c Config) (disconnect func(), err error) {
	if c.Transport == TCP {
		return e.connectTCP(ctx, c)
	}
	return e.connectSDP(ctx, c)
}

func (e *side) connectTCP(ctx context.Context, c Config) (disconnect func(), err error) {
	var l net.Listener
	var mine listenInfo
	if e.Rank == 1 {
		if l, mine, err = listenTCP(); err != nil {
			return nil, err
		}
		defer l.Close()
	}
	infos, err := proc.Exchange(ctx, e.Worker, mine)
	if err != nil {
		return nil, err
	}
	if e.Rank == 1 {
		e.conn, err = l.Accept()
	} else {
		e.conn, err = dialTCP(ctx, infos[1])
	}
	if err != nil {
		return nil, err
	}
	conn := e.conn.(*net.TCPConn)
	if n := c.Buffers * c.BufferBytes; n > 0 {
		n /= sockBufFactor
		if err := errors.Join(conn.SetReadBuffer(n), conn.SetWriteBuffer(n)); err != nil {
			return nil, err
		}
		e.gauge = socketGauge(conn, n*sockBufFactor)
	}
	return func() { conn.Close() }, nil
}

// openStack opens an adapter and an SDP stack on it.
func openStack(c Config) (dev *rnic.Device, stack *sdp.Stack, disconnect func(), err error) {
	o := sdp.Options{Buffers: c.Buffers, BufferBytes: c.BufferBytes, ZeroCopy: c.ZeroCopy}
	if err := o.FlowControl.UnmarshalText([]byte(c.Transport.flowControl())); err != nil {
		return nil, nil, nil, err
	}
	if dev, err = rnic.Open(rnic.Options{AnyPort: true, Spin: c.Spin, Impair: c.Impair}); err != nil {
		return nil, nil, nil, err
	}
	if stack, err = sdp.New(dev, o); err != nil {
		return nil, nil, nil, errors.Join(err, dev.Close())
	}
	return dev, stack, func() {
		stack.Close()
		dev.Close()
	}, nil
}

func (e *side) connectSDP(ctx context.Context, c Config) (disconnect func(), err error) {
	dev, stack, disconnect, err := openStack(c)
	if err != nil {
		return nil, err
	}
	conn, err := e.acceptOrDialSDP(ctx, dev, stack)
	if err != nil {
		disconnect()
		return nil, err
	}
	e.conn = conn
	if c.Buffers > 0 {
		e.gauge = sdpGauge(conn)
	}
	return disconnect, nil
}

func (e *side) acceptOrDialSDP(ctx context.Context, dev *rnic.Device, stack *sdp.Stack) (*sdp.Conn, error) {
	var l *sdp.Listener
	var mine listenInfo
	if e.Rank == 1 {
		var err error
		if l, mine, err = listenSDP(dev, stack); err != nil {
			return nil, err
		}
		defer l.Close()
	}
	infos, err := proc.Exchange(ctx, e.Worker, mine)
	if err != nil {
		return nil, err
	}
	if e.Rank == 1 {
		return l.AcceptSDP()
	}
	return dialSDP(ctx, stack, infos[1])
}

// listenTCP listens and returns the listener and its address.
func listenTCP() (net.Listener, listenInfo, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, listenInfo{}, err
	}
	return l, listenInfo{Addr: l.Addr().(*net.TCPAddr).AddrPort()}, nil
}

func listenSDP(dev *rnic.Device, stack *sdp.Stack) (*sdp.Listener, listenInfo, error) {
	port, err := dev.QueryPort(1)
	if err != nil {
		return nil, listenInfo{}, err
	}
	l, err := stack.Listen("sdp", ":0")
	if err != nil {
		return nil, listenInfo{}, err
	}
	return l.(*sdp.Listener), listenInfo{l.Addr().(sdp.Addr).AddrPort, port.UDPPort}, nil
}

func dialTCP(ctx context.Context, to listenInfo) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp4", to.Addr.String())
}

func dialSDP(ctx context.Context, stack *sdp.Stack, to listenInfo) (*sdp.Conn, error) {
	d := sdp.Dialer{Stack: stack, UDPPort: to.UDPPort}
	c, err := d.DialContext(ctx, "sdp", to.Addr.String())
	if err != nil {
		return nil, err
	}
	return c.(*sdp.Conn), nil
}
