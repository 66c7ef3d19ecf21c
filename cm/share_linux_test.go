package cm_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/broker"
	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// needSharing skips a test if devices cannot share an address.
func needSharing(t *testing.T) {
	if strings.Contains(os.Getenv(rnic.EnvLink), "portable") {
		t.Skip("shared addresses need the fast path of Linux")
	}
}

// TestSharedAddress connects processes at one address with each other and with a device at another
// one, in both directions. Two of them listen, and one has no listener.
func TestSharedAddress(t *testing.T) {
	needSharing(t)
	addr := ownaddr.Device(61)
	a, b, c := newChild(t, addr), newChild(t, addr), newChild(t, addr)
	first, second := a.Do(order{Do: "listen", Port: 7001}), b.Do(order{Do: "listen"})
	require.Equal(t, netip.AddrPortFrom(addr.Addr(), 7001), first.Addr)
	for _, from := range []*child{a, b, c} {
		for _, to := range []netip.AddrPort{first.Addr, second.Addr} {
			from.Do(order{Do: "dial", Addr: to})
			from.Do(order{Do: "exchange", N: 20})
		}
	}
	e := newEnd(t, cm.Options{})
	for _, to := range []netip.AddrPort{first.Addr, second.Addr} {
		out, err := dialEcho(e.dev, e.m, to)
		require.NoError(t, err)
		require.NoError(t, out.exchange(20))
		require.NoError(t, out.conn.Close())
	}
	l, err := e.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	defer l.Close()
	go serveEcho(e.dev, l)
	for _, from := range []*child{a, c} {
		from.Do(order{Do: "dial", Addr: l.Addr()})
		from.Do(order{Do: "exchange", N: 20})
	}
}

// TestSharedAddressKilled kills the process that opened the address, the broker, during the
// traffic of two others. They go on, new processes join, and new connections work. Its listener
// is gone: requests for it are rejected, and its port is free.
func TestSharedAddressKilled(t *testing.T) {
	needSharing(t)
	addr := ownaddr.Device(62)
	first := newChild(t, addr)
	a, b := newChild(t, addr), newChild(t, addr)
	gone := first.Do(order{Do: "listen", Port: 7001}).Addr
	here := a.Do(order{Do: "listen", Port: 7002}).Addr
	b.Do(order{Do: "dial", Addr: here})
	b.Send(order{Do: "exchange", N: 5000})
	first.Kill()
	b.Receive()
	e := newEnd(t, cm.Options{})
	out, err := dialEcho(e.dev, e.m, here)
	require.NoError(t, err)
	require.NoError(t, out.exchange(20))
	_, err = dialEcho(e.dev, e.m, gone)
	var rejected *cm.RejectError
	require.ErrorAs(t, err, &rejected)
	require.Equal(t, cm.InvalidServiceID, rejected.Reason)

	c := newChild(t, addr)
	require.Equal(t, gone, c.Do(order{Do: "listen", Port: 7001}).Addr)
	b.Do(order{Do: "dial", Addr: gone})
	b.Do(order{Do: "exchange", N: 20})
	c.Kill() // the listener of b's connection
	require.NoError(t, out.exchange(20))
	c = newChild(t, addr)
	c.Do(order{Do: "dial", Addr: here})
	c.Do(order{Do: "exchange", N: 20})
}

// TestSharedAddressInUse checks that two devices at an address have one space of ports, as long as
// the listener or its process lives.
func TestSharedAddressInUse(t *testing.T) {
	needSharing(t)
	o := rnic.Options{Addr: ownaddr.Device(63), Share: true}
	a, b := newEndOn(t, o, cm.Options{}), newEndOn(t, o, cm.Options{})
	l, err := a.m.Listen(7001, cm.ListenOptions{})
	require.NoError(t, err)
	for _, e := range []*end{a, b} {
		_, err = e.m.Listen(7001, cm.ListenOptions{})
		require.ErrorIs(t, err, cm.ErrInUse)
	}
	other, err := b.m.Listen(7001, cm.ListenOptions{PortSpace: cm.IB})
	require.NoError(t, err)
	require.NoError(t, other.Close())
	require.NoError(t, l.Close())
	_, err = b.m.Listen(7001, cm.ListenOptions{})
	require.NoError(t, err)
	require.NoError(t, b.m.Close())
	_, err = a.m.Listen(7001, cm.ListenOptions{})
	require.NoError(t, err)
	u, err := a.m.ListenUD(0, cm.ListenOptions{})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		r, err := u.Accept(soon(t))
		if err == nil {
			err = r.Reject(0, nil)
		}
		done <- err
	}()
	_, err = newEnd(t, cm.Options{}).m.DialUD(soon(t), u.Addr(), cm.UDDialOptions{})
	require.ErrorAs(t, err, new(*cm.UDRejectError))
	require.NoError(t, <-done)
}

// TestSharedAddressStopped stops the broker. Processes join meanwhile, and connect.
func TestSharedAddressStopped(t *testing.T) {
	needSharing(t)
	addr := ownaddr.Device(64)
	first := newChild(t, addr)
	a := newChild(t, addr)
	require.NoError(t, first.Process().Signal(syscall.SIGSTOP))
	b := newChild(t, addr)
	b.Do(order{Do: "dial", Addr: a.Do(order{Do: "listen"}).Addr})
	b.Do(order{Do: "exchange", N: 20})
	a.Kill() // its slot is freed later
	c := newChild(t, addr)
	c.Do(order{Do: "dial", Addr: b.Do(order{Do: "listen"}).Addr})
	c.Do(order{Do: "exchange", N: 20})
	require.NoError(t, first.Process().Signal(syscall.SIGCONT))
	first.Do(order{Do: "dial", Addr: c.Do(order{Do: "listen"}).Addr})
	first.Do(order{Do: "exchange", N: 20})
}

// TestSharedAddressChaos kills processes at any moment: while they join, connect or exchange
// messages. The others always join, listen and connect.
func TestSharedAddressChaos(t *testing.T) {
	needSharing(t)
	addr := ownaddr.Device(65)
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	var living []*child
	for i := range rounds {
		doomed := startChild(t)
		doomed.Send(order{Do: "open", Addr: addr})
		if i%3 > 0 { // else during its start
			doomed.Send(order{Do: "listen"})
			runtime.Gosched()
		}
		next := startChild(t)
		next.Send(order{Do: "open", Addr: addr})
		if i%2 == 0 {
			doomed.Kill()
		}
		next.Receive()
		if i%2 == 1 {
			doomed.Kill()
		}
		living = append(living, next)
		listener := next.Do(order{Do: "listen"}).Addr
		from := living[i*7%len(living)]
		from.Do(order{Do: "dial", Addr: listener})
		from.Send(order{Do: "exchange", N: 200})
		if len(living) > 3 { // the oldest one, the broker
			victim := 0
			if living[0] == from {
				victim = 1
			}
			living[victim].Kill()
			living = append(living[:victim], living[victim+1:]...)
		}
		from.Receive()
	}
	for _, c := range living {
		c.Kill()
	}
	dev, err := rnic.Open(rnic.Options{Addr: addr}) // nobody has the address
	require.NoError(t, err)
	require.NoError(t, dev.Close())
}

// TestSharedAddressProcesses runs as many processes at one address as there are slots. Each one
// connects to the next.
func TestSharedAddressProcesses(t *testing.T) {
	needSharing(t)
	if testing.Short() {
		t.Skip("64 processes")
	}
	addr := ownaddr.Device(66)
	list := make([]*child, broker.Slots)
	for i := range list {
		list[i] = startChild(t)
		list[i].Send(order{Do: "open", Addr: addr})
	}
	var listeners []netip.AddrPort
	for _, c := range list {
		c.Receive()
		listeners = append(listeners, c.Do(order{Do: "listen"}).Addr)
	}
	for i, c := range list {
		c.Send(order{Do: "dial", Addr: listeners[(i+1)%len(list)]})
	}
	for _, c := range list {
		c.Receive()
		c.Send(order{Do: "exchange", N: 20})
	}
	for _, c := range list {
		c.Receive()
	}
}

func init() {
	startHeir = func() (int, error) {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0, err
		}
		for _, e := range list {
			if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
				_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0) // fails for that of ReadDir
			}
		}
		heir := exec.Command("sleep", "600")
		err = heir.Start()
		return heir.Process.Pid, err
	}
}

// TestSharedAddressForked kills the broker, whose descriptors a child of fork without exec keeps.
// Its ports are free, and processes join, listen and connect. The address is in use until the
// child ends.
func TestSharedAddressForked(t *testing.T) {
	needSharing(t)
	addr := ownaddr.Device(67)
	first := newChild(t, addr)
	gone := first.Do(order{Do: "listen", Port: 7001}).Addr
	heir := first.Do(order{Do: "fork"}).PID
	defer unix.Kill(heir, unix.SIGKILL)
	a := newChild(t, addr)
	first.Kill()
	b := newChild(t, addr)
	require.Equal(t, gone, b.Do(order{Do: "listen", Port: 7001}).Addr)
	for _, c := range []*child{a, b} {
		c.Do(order{Do: "dial", Addr: gone})
		c.Do(order{Do: "exchange", N: 20})
	}
	a.Kill()
	b.Kill()
	_, err := rnic.Open(rnic.Options{Addr: addr})
	require.ErrorIs(t, err, unix.EADDRINUSE)
	_, err = rnic.Open(rnic.Options{Addr: addr, Share: true})
	require.ErrorIs(t, err, unix.EADDRINUSE)
	require.EqualError(t, err, fmt.Sprintf("verbs: %v: open device: join shared address: process %d has ended, but its children hold the name: address already in use",
		addr, first.Process().Pid))
	require.NoError(t, unix.Kill(heir, unix.SIGKILL))
	require.Eventually(t, func() bool {
		dev, err := rnic.Open(rnic.Options{Addr: addr})
		if err == nil {
			err = dev.Close()
		}
		return err == nil
	}, patience, time.Millisecond)
}

// TestSharedAddressWithdrawn withdraws a request before the peer knows the ID of the listener's
// side, so that nothing in the message tells which of three devices has the request.
func TestSharedAddressWithdrawn(t *testing.T) {
	needSharing(t)
	o := rnic.Options{Addr: ownaddr.Device(68), Share: true}
	list := []*end{newEndOn(t, o, cm.Options{}), newEndOn(t, o, cm.Options{}), newEndOn(t, o, cm.Options{})}
	e := newEnd(t, cm.Options{})
	for _, to := range list {
		l, err := to.m.Listen(0, cm.ListenOptions{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(soon(t))
		done := make(chan error, 1)
		go func() {
			_, err := e.m.Dial(ctx, l.Addr(), e.newQP(t, verbs.RC), cm.DialOptions{})
			done <- err
		}()
		r, err := l.Accept(soon(t))
		require.NoError(t, err)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		require.Eventually(t, func() bool { return to.m.Stats().HalfOpen == 0 }, patience, time.Millisecond)
		_, err = r.Accept(soon(t), to.newQP(t, verbs.RC), cm.AcceptOptions{})
		require.ErrorIs(t, err, cm.ErrWithdrawn)
	}
}

// TestSharedAddressLostPeer disconnects from a process that was killed. Another process at its
// address confirms.
func TestSharedAddressLostPeer(t *testing.T) {
	needSharing(t)
	addr := ownaddr.Device(69)
	newChild(t, addr)
	doomed := newChild(t, addr)
	e := newEnd(t, cm.Options{})
	out, err := dialEcho(e.dev, e.m, doomed.Do(order{Do: "listen"}).Addr)
	require.NoError(t, err)
	require.NoError(t, out.exchange(20))
	doomed.Kill()
	require.NoError(t, out.conn.Close())
}

// TestSharedAddressPeerKilled kills processes with connections on which nothing is sent. Another
// process at the address disconnects them for the dead one, of which the peers would not learn:
// the first process, which is the broker, and another one, for connections of both directions.
func TestSharedAddressPeerKilled(t *testing.T) {
	needSharing(t)
	addr := ownaddr.Device(70)
	list := []*child{newChild(t, addr), newChild(t, addr), newChild(t, addr)}
	e := newEnd(t, cm.Options{})
	l, err := e.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	for _, doomed := range list[:2] {
		out, err := dialEcho(e.dev, e.m, doomed.Do(order{Do: "listen"}).Addr)
		require.NoError(t, err)
		doomed.Send(order{Do: "dial", Addr: l.Addr()})
		r, err := l.Accept(soon(t))
		require.NoError(t, err)
		in, err := r.Accept(soon(t), e.newQP(t, verbs.RC), cm.AcceptOptions{})
		require.NoError(t, err)
		doomed.Receive()
		doomed.Kill()
		for _, c := range []*cm.Conn{out.conn, in} {
			select {
			case <-c.Done():
				require.ErrorIs(t, c.Err(), cm.ErrDisconnected)
			case <-soon(t).Done():
				require.Fail(t, "the connection has not ended")
			}
		}
	}
}
