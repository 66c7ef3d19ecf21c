package sdp_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// silent returns the address of an adapter that never replies: a closed port would refuse packets.
func silent() netip.AddrPort { return netip.AddrPortFrom(silentAdapter(90), 7471) }

var silentSockets sync.Map // converted to *net.UDPConn, open until the end

// silentAdapter returns the address of a socket that is not read, on the usual port of adapters.
func silentAdapter(host byte) netip.Addr {
	ip := netip.AddrFrom4([4]byte{127, 91, 91, host})
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 4791)))
	if err == nil { // otherwise another test has opened it
		silentSockets.Store(host, c)
	}
	return ip
}

// TestCloseDuringHandshakes checks that closing a stack ends pending dials and handshakes.
func TestCloseDuringHandshakes(t *testing.T) {
	s, err := sdp.New(device(t, rnic.Options{}), sdp.Options{})
	require.NoError(t, err)
	l, err := s.ListenPort(0, 0)
	require.NoError(t, err)
	p := newPuppet(t)
	errs := make(chan error, 11)
	for range cap(errs) - 1 {
		go func() {
			_, err := s.DialAddr(t.Context(), p.addr(), sdp.Dialer{UDPPort: p.udpPort})
			errs <- err
		}()
	}
	for range cap(errs) - 1 {
		_, err := p.l.Accept(t.Context()) // without a reply
		require.NoError(t, err)
	}
	go func() {
		_, err := l.Accept()
		errs <- err
	}()
	require.NoError(t, s.Close())
	for range cap(errs) {
		require.ErrorIs(t, <-errs, net.ErrClosed)
	}
}

// TestCloseDuringDials closes a stack while connections are dialed and closed.
func TestCloseDuringDials(t *testing.T) {
	a := stack(t, rnic.Options{}, sdp.Options{})
	for range 20 {
		dev := device(t, rnic.Options{}).(*rnic.Device)
		port, err := dev.QueryPort(1)
		require.NoError(t, err)
		b, err := sdp.New(dev, sdp.Options{Buffers: 2, BufferBytes: 1 << 10, Queue: 4, Receives: 8})
		require.NoError(t, err)
		l, err := b.ListenPort(0, 2)
		require.NoError(t, err)
		var all sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), hang)
		first := make(chan struct{}, 8)
		for range cap(first) {
			all.Go(func() {
				for {
					c, err := a.DialAddr(ctx, l.Addr().(sdp.Addr).AddrPort, sdp.Dialer{UDPPort: port.UDPPort})
					if err != nil {
						return
					}
					c.Close()
					select {
					case first <- struct{}{}:
					default:
					}
				}
			})
		}
		all.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		})
		<-first
		require.NoError(t, b.Close())
		cancel()
		all.Wait()
	}
}

// TestClosedStack checks that a closed stack starts nothing, and has closed its ports on a shared
// manager.
func TestClosedStack(t *testing.T) {
	dev := device(t, rnic.Options{})
	m, err := cm.New(dev, cm.Options{})
	require.NoError(t, err)
	defer m.Close()
	s, err := sdp.New(dev, sdp.Options{Manager: m})
	require.NoError(t, err)
	l, err := s.ListenPort(0, 0)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "twice")
	_, err = s.Listen("sdp", ":0")
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = s.Dial("sdp", silent().String())
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = s.ListenPacketPort(0)
	require.ErrorIs(t, err, net.ErrClosed)

	again, err := sdp.New(dev, sdp.Options{Manager: m})
	require.NoError(t, err)
	defer again.Close()
	_, err = again.ListenPort(l.Addr().(sdp.Addr).Port(), 0)
	require.NoError(t, err, "the port is free")
	require.NoError(t, l.Close())
}

// TestBacklog checks that at most the backlog of connections is answered, and that later ones wait
// for Accept.
func TestBacklog(t *testing.T) {
	const backlog = 3
	e := newEnds(t, rnic.Options{}, sdp.Options{})
	l, err := e.b.ListenPort(0, backlog)
	require.NoError(t, err)
	defer l.Close()
	dial := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c, err := e.a.DialAddr(ctx, l.Addr().(sdp.Addr).AddrPort, sdp.Dialer{UDPPort: e.port})
		if err == nil {
			t.Cleanup(func() { c.Close() })
		}
		return err
	}
	for range backlog {
		require.NoError(t, dial(hang))
	}
	require.ErrorIs(t, dial(100*time.Millisecond), context.DeadlineExceeded, "not accepted yet")
	more := make(chan error, backlog)
	for range backlog {
		go func() { more <- dial(hang) }()
	}
	for range 2 * backlog {
		c, err := l.Accept()
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	for range backlog {
		require.NoError(t, <-more)
	}

	for _, backlog := range []int{-1, 1<<16 + 1} {
		_, err := (&sdp.ListenConfig{Stack: e.b, Backlog: backlog}).Listen(t.Context(), "sdp", ":0")
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, "out of range [0, 65536]")
	}
}

// TestNoDevice checks that a nil device is an error.
func TestNoDevice(t *testing.T) {
	missing, err := rnic.Open(rnic.Options{Addr: netip.MustParseAddrPort("192.0.2.77:0")})
	require.Error(t, err)
	m, err := cm.New(device(t, rnic.Options{}), cm.Options{})
	require.NoError(t, err)
	defer m.Close()
	for _, dev := range []verbs.Device{nil, missing} {
		for _, m := range []*cm.Manager{nil, m} {
			_, err := sdp.New(dev, sdp.Options{Manager: m})
			require.ErrorContains(t, err, "sdp: nil device")
			require.ErrorIs(t, err, verbs.ErrInvalid)
		}
	}
}

// TestSecondStack checks that the error of a second stack on a device has the remedy.
func TestSecondStack(t *testing.T) {
	dev := device(t, rnic.Options{})
	m, err := cm.New(dev, cm.Options{})
	require.NoError(t, err)
	defer m.Close()
	_, err = sdp.New(dev, sdp.Options{})
	require.ErrorIs(t, err, verbs.ErrBusy)
	require.ErrorContains(t, err, "set Options.Manager")
	for range 2 {
		s, err := sdp.New(dev, sdp.Options{Manager: m})
		require.NoError(t, err)
		defer s.Close()
	}
}

// stuckQP is a queue pair whose transition to ready-to-receive blocks until it is released.
type stuckQP struct {
	verbs.QP
	release <-chan struct{}
}

func (q stuckQP) Modify(a verbs.QPAttr, mask verbs.QPAttrMask) error {
	if a.State == verbs.StateRTR {
		<-q.release
	}
	return q.QP.Modify(a, mask)
}

// TestHandshakeIsBounded checks that a peer that becomes silent during its handshake is dropped
// after a while, and frees its place in the backlog.
func TestHandshakeIsBounded(t *testing.T) {
	s := stack(t, rnic.Options{}, sdp.Options{})
	s.SetAcceptTime(50 * time.Millisecond)
	l, err := s.ListenPort(0, 1)
	require.NoError(t, err)
	defer l.Close()
	p := newPuppet(t)
	release, dialed := make(chan struct{}), make(chan error, 1)
	go func() {
		at := l.Addr().(sdp.Addr).AddrPort
		hello := bsdh.Hello{Version: bsdh.Version, LocalPort: 7, Src: p.manager.Addr().Addr(), Dst: at.Addr(), MaxAdverts: 1, DesRemRcvSz: puppetSlot, LocalRcvSz: puppetSlot, Bufs: puppetSlots}
		_, err := p.manager.Dial(t.Context(), at, stuckQP{p.qp, release}, cm.DialOptions{PortSpace: cm.SDP, UDPPort: s.UDPPort(), PrivateData: hello.Append(nil)})
		dialed <- err
	}()
	for l.Refused() == 0 {
		select {
		case err := <-dialed:
			require.NoError(t, err)
			t.Fatal("the handshake is over")
		default:
			runtime.Gosched()
		}
	}
	close(release)
	<-dialed // with or without an error: it may not have received it yet
}

// TestShutdown: a listener no longer accepts, written data arrives, and the stack is closed, also
// if the peer does not read in time.
func TestShutdown(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{})
	a, b := e.dial(t)
	l, err := e.a.Listen("sdp", ":0")
	require.NoError(t, err)
	_, err = a.Write([]byte("the last words"))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	done := make(chan error, 1)
	go func() { done <- e.a.Shutdown(soon(t)) }()
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	text, err := io.ReadAll(b)
	require.NoError(t, err)
	require.Equal(t, "the last words", string(text))
	require.NoError(t, b.Close())
	require.NoError(t, <-done)
	require.NoError(t, e.a.Shutdown(soon(t)), "it is closed")

	e = newEnds(t, rnic.Options{}, sdp.Options{Buffers: 2, BufferBytes: 4 << 10, ZeroCopy: -1})
	a, _ = e.dial(t)
	_, err = a.Write(make([]byte, 12<<10)) // more than the buffers of the peer
	require.NoError(t, err)
	require.NoError(t, a.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, e.a.Shutdown(ctx), context.DeadlineExceeded)
	_, err = e.a.Listen("sdp", ":0")
	require.ErrorIs(t, err, net.ErrClosed)
}
