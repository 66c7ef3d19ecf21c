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

// sheet is where rank 1 listens.
type sheet struct {
	Addr    netip.AddrPort
	UDPPort uint16 // of its adapter
}

// connect makes the connection, to a listener at rank 1. The caller calls
// hangUp.
func (e *end) connect(ctx context.Context, c Config) (hangUp func(), err error) {
	if c.Over == TCP {
		return e.connectTCP(ctx, c)
	}
	return e.connectSDP(ctx, c)
}

func (e *end) connectTCP(ctx context.Context, c Config) (hangUp func(), err error) {
	var l net.Listener
	var mine sheet
	if e.Rank == 1 {
		if l, mine, err = listenTCP(); err != nil {
			return nil, err
		}
		defer l.Close()
	}
	sheets, err := proc.Exchange(ctx, e.Worker, mine)
	if err != nil {
		return nil, err
	}
	if e.Rank == 1 {
		e.conn, err = l.Accept()
	} else {
		e.conn, err = dialTCP(ctx, sheets[1])
	}
	if err != nil {
		return nil, err
	}
	conn := e.conn.(*net.TCPConn)
	if n := c.Buffers * c.BufferBytes; n > 0 {
		n /= doubled
		if err := errors.Join(conn.SetReadBuffer(n), conn.SetWriteBuffer(n)); err != nil {
			return nil, err
		}
		e.gauge = socketGauge(conn, n*doubled)
	}
	return func() { conn.Close() }, nil
}

// openStack opens an adapter and SDP on it.
func openStack(c Config) (dev *rnic.Device, stack *sdp.Stack, hangUp func(), err error) {
	o := sdp.Options{Buffers: c.Buffers, BufferBytes: c.BufferBytes, ZeroCopy: c.ZeroCopy}
	if err := o.Design.UnmarshalText([]byte(c.Over.design())); err != nil {
		return nil, nil, nil, err
	}
	if dev, err = rnic.Open(rnic.Options{AnyPort: true, Spin: c.Spin}); err != nil {
		return nil, nil, nil, err
	}
	if stack, err = sdp.New(dev, nil, o); err != nil {
		return nil, nil, nil, errors.Join(err, dev.Close())
	}
	return dev, stack, func() {
		stack.Close()
		dev.Close()
	}, nil
}

func (e *end) connectSDP(ctx context.Context, c Config) (hangUp func(), err error) {
	dev, stack, hangUp, err := openStack(c)
	if err != nil {
		return nil, err
	}
	conn, err := e.callSDP(ctx, dev, stack)
	if err != nil {
		hangUp()
		return nil, err
	}
	e.conn = conn
	if c.Buffers > 0 {
		e.gauge = meterGauge(conn)
	}
	return hangUp, nil
}

func (e *end) callSDP(ctx context.Context, dev *rnic.Device, stack *sdp.Stack) (*sdp.Conn, error) {
	var l *sdp.Listener
	var mine sheet
	if e.Rank == 1 {
		var err error
		if l, mine, err = listenSDP(dev, stack); err != nil {
			return nil, err
		}
		defer l.Close()
	}
	sheets, err := proc.Exchange(ctx, e.Worker, mine)
	if err != nil {
		return nil, err
	}
	if e.Rank == 1 {
		return l.AcceptSDP()
	}
	return dialSDP(ctx, stack, sheets[1])
}

// listenTCP and listenSDP return a listener and where it is, dialTCP and dialSDP a
// connection to it.
func listenTCP() (net.Listener, sheet, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, sheet{}, err
	}
	return l, sheet{Addr: l.Addr().(*net.TCPAddr).AddrPort()}, nil
}

func listenSDP(dev *rnic.Device, stack *sdp.Stack) (*sdp.Listener, sheet, error) {
	port, err := dev.QueryPort(1)
	if err != nil {
		return nil, sheet{}, err
	}
	l, err := stack.ListenPort(0, 0)
	if err != nil {
		return nil, sheet{}, err
	}
	return l, sheet{l.Addr().(sdp.Addr).AddrPort, port.UDPPort}, nil
}

func dialTCP(ctx context.Context, to sheet) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp4", to.Addr.String())
}

func dialSDP(ctx context.Context, stack *sdp.Stack, to sheet) (*sdp.Conn, error) {
	return stack.DialAddr(ctx, to.Addr, sdp.Dialer{UDPPort: to.UDPPort})
}
