package cm_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/childtest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// An order is an order to a child, a process with a device and a manager: "open" a device at Addr that others share, "listen" on Port and
// return every message, "dial" Addr, and "exchange" N messages with the peer. "fork" starts a process that has the child's descriptors, as
// after fork without exec.
type order struct {
	Do   string
	Addr netip.AddrPort
	Port uint16
	N    int
}

// A reply is the reply to an order.
type reply struct {
	Addr netip.AddrPort // of the listener
	PID  int            // of the process that fork starts
}

// startHeir starts a process that has all descriptors of this one. It is for Linux only.
var startHeir func() (pid int, err error)

// A childState is the state of a child: its device, and the connection that it has dialed.
type childState struct {
	device *rnic.Device
	m      *cm.Manager
	echo   *echoEnd
}

func (s *childState) execute(o *order, r *reply) (err error) {
	switch o.Do {
	case "open":
		if s.device, err = rnic.Open(rnic.Options{Addr: o.Addr, Share: true}); err != nil {
			return err
		}
		s.m, err = cm.New(s.device, cm.Options{})
	case "listen":
		var l *cm.Listener
		if l, err = s.m.Listen(o.Port, cm.ListenOptions{}); err != nil {
			return err
		}
		r.Addr = l.Addr()
		go serveEcho(s.device, l)
	case "dial":
		s.echo, err = dialEcho(s.device, s.m, o.Addr)
	case "fork":
		r.PID, err = startHeir()
	case "exchange":
		err = s.echo.exchange(o.N)
	default:
		err = fmt.Errorf("unknown order %q", o.Do)
	}
	return err
}

// An echoEnd is one end of a connection on which one side returns every message of 8 bytes.
type echoEnd struct {
	qp   verbs.QP
	cq   verbs.CQ
	mr   verbs.MR // received at 0, sent at 8
	conn *cm.Conn
}

func newEchoEnd(dev verbs.Device) (*echoEnd, error) {
	pd, err := dev.AllocPD()
	if err != nil {
		return nil, err
	}
	e := &echoEnd{}
	if e.cq, err = dev.CreateCQ(16); err != nil {
		return nil, err
	}
	if e.mr, err = pd.RegMR(make([]byte, 16), verbs.AccessLocalWrite); err != nil {
		return nil, err
	}
	e.qp, err = pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq, SelectiveSignaling: true,
		Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}})
	return e, err
}

// receive returns a request for the next message.
func (e *echoEnd) receive() []verbs.RecvWR {
	return []verbs.RecvWR{{SGList: []verbs.SGE{e.mr.SGE(0, 8)}}}
}

// send sends 8 bytes.
func (e *echoEnd) send(off int) error {
	_, err := e.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{e.mr.SGE(off, 8)}}})
	return err
}

// next waits for the next message.
func (e *echoEnd) next() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var wc [1]verbs.WC
	if _, err := e.cq.PollWait(ctx, wc[:]); err != nil {
		return err
	}
	return wc[0].Err()
}

// exchange sends n messages and compares them with what comes back.
func (e *echoEnd) exchange(n int) error {
	b := e.mr.Bytes()
	for i := range n {
		if _, err := e.qp.PostRecv(e.receive()); err != nil {
			return err
		}
		for k := range 8 {
			b[8+k] = byte(i + k)
		}
		if err := e.send(8); err != nil {
			return err
		}
		if err := e.next(); err != nil {
			return err
		}
		if string(b[:8]) != string(b[8:]) {
			return fmt.Errorf("message %d: sent %x, received %x", i, b[8:], b[:8])
		}
	}
	return nil
}

// serveEcho accepts connections and returns their messages until the listener is closed.
func serveEcho(dev verbs.Device, l *cm.Listener) {
	for {
		r, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		e, err := newEchoEnd(dev)
		if err != nil {
			fmt.Fprintln(os.Stderr, "echo:", err)
			return
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if _, err := r.Accept(ctx, e.qp, cm.AcceptOptions{Receives: e.receive()}); err != nil {
				return
			}
			for {
				var wc [1]verbs.WC
				if _, err := e.cq.PollWait(context.Background(), wc[:]); err != nil || wc[0].Err() != nil {
					return
				}
				copy(e.mr.Bytes()[8:], e.mr.Bytes()[:8])
				if _, err := e.qp.PostRecv(e.receive()); err != nil {
					return
				}
				if err := e.send(8); err != nil {
					return
				}
			}
		}()
	}
}

// dialEcho connects to an echo server.
func dialEcho(dev verbs.Device, m *cm.Manager, to netip.AddrPort) (*echoEnd, error) {
	e, err := newEchoEnd(dev)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e.conn, err = m.Dial(ctx, to, e.qp, cm.DialOptions{})
	return e, err
}

// A child is a child process, seen by its parent.
type child = childtest.Child[order, reply]

// newChild starts a child that shares an address.
func newChild(t testing.TB, addr netip.AddrPort) *child {
	t.Helper()
	c := startChild(t)
	c.Do(order{Do: "open", Addr: addr})
	return c
}

// startChild starts a child without a device.
func startChild(t testing.TB) *child {
	t.Helper()
	return childtest.Start[order, reply](t)
}
