package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A TCP is the link of a device whose queue pairs have a TCP connection each (iWARP). As a Conn it
// carries no datagrams: its Wait ends when a stream is readable, or writable if that was requested.
// It listens on its address; the connections are set up by package net and then adopted.
type TCP struct {
	closeGuard
	waiter
	listener *net.TCPListener
	local    netip.AddrPort
	caps     Caps
	lingers  sync.WaitGroup

	events [64]unix.EpollEvent
	ready  []uint32 // found by Wait, returned by the next Ready; they belong to the reader
}

var _ Conn = (*TCP)(nil)

// OpenTCP opens a link at the address of the options.
func OpenTCP(o Options) (*TCP, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", o.Addr.String())
	if err != nil {
		var sys *os.SyscallError
		if errors.As(err, &sys) {
			err = sys
		}
		return nil, bindError(o.Addr, err)
	}
	t := &TCP{listener: l.(*net.TCPListener), caps: Caps{Name: "tcp-linux"}}
	t.closeGuard.init()
	t.local = t.listener.Addr().(*net.TCPAddr).AddrPort()
	t.local = netip.AddrPortFrom(t.local.Addr().Unmap().WithZone(""), t.local.Port())
	t.caps.setInterface(o.Addr.Addr())
	if err := t.openSet(); err != nil {
		l.Close()
		t.waiter.closeFDs()
		return nil, fmt.Errorf("link: %w", err)
	}
	return t, nil
}

// LocalAddr implements Conn.
func (t *TCP) LocalAddr() netip.AddrPort { return t.local }

// Caps implements Conn.
func (t *TCP) Caps() Caps { return t.caps }

// WriteBatch implements Conn. There are no datagrams to send.
func (t *TCP) WriteBatch(*Batch) error { return nil }

// ReadBatch implements Conn. There are no datagrams.
func (t *TCP) ReadBatch(r *Datagrams) (int, error) {
	r.Reset()
	return 0, nil
}

// Accept waits for the next connection from a peer. It returns net.ErrClosed after Close.
func (t *TCP) Accept() (*net.TCPConn, error) { return t.listener.AcceptTCP() }

// Wait implements Conn.
func (t *TCP) Wait(timeout time.Duration) (bool, error) {
	if !t.enter(callWait) {
		return false, net.ErrClosed
	}
	defer t.exit(callWait)
	if timeout > 0 {
		if err := t.lazyTimer.arm(timeout); err != nil {
			return false, err
		}
	}
	t.ready = t.ready[:0] // the streams of an earlier Wait have their events again
	err := t.collectReady(timeout == 0)
	if t.closed.Load() {
		return false, net.ErrClosed
	}
	return len(t.ready) > 0, err
}

// collectReady adds the numbers of streams with events to ready.
func (t *TCP) collectReady(poll bool) error {
	n, _, err := t.set.Wait(t.events[:], poll)
	for _, e := range t.events[:n] {
		if e.Fd == timerID {
			t.clear()
		} else {
			t.ready = append(t.ready, uint32(e.Fd))
		}
	}
	return err
}

// Ready appends the numbers of streams that are readable, or writable if that was requested. It does
// not block.
func (t *TCP) Ready(ids []uint32) []uint32 {
	if len(t.ready) == 0 {
		if !t.enter(callRead) {
			return ids
		}
		_ = t.collectReady(true)
		t.exit(callRead)
	}
	ids = append(ids, t.ready...)
	t.ready = t.ready[:0]
	return ids
}

// Wake implements Conn.
func (t *TCP) Wake() {
	if t.set.BeginWake() && t.enter(callWake) {
		t.set.Interrupt()
		t.exit(callWake)
	}
}

// Close implements Conn. Streams must be closed before; it waits until their peers have closed them,
// too, for at most maxLinger.
func (t *TCP) Close() error {
	t.close(func() {
		t.listener.Close()
		t.set.Interrupt()
	}, func() {
		t.lingers.Wait()
		t.waiter.closeFDs()
	})
	return nil
}

// A Stream is an adopted TCP connection. One goroutine at a time may call its methods.
type Stream struct {
	tcp    *TCP
	fd     int
	id     uint32
	events uint32 // that it waits for
	vec    []unix.Iovec
	msg    unix.Msghdr
}

// Adopt takes over a connection. Its events have the given number, of at least 16.
func (t *TCP) Adopt(c *net.TCPConn, id uint32) (*Stream, error) {
	fd := -1
	raw, err := c.SyscallConn()
	if err == nil {
		errDup := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
		err = errors.Join(err, errDup)
	}
	c.Close()
	if err != nil {
		return nil, fmt.Errorf("link: adopt connection: %w", err)
	}
	s := &Stream{tcp: t, fd: fd, id: id, events: unix.EPOLLIN}
	if err := t.set.Add(fd, unix.EPOLLIN, int(id)); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("link: adopt connection: %w", err)
	}
	return s, nil
}

// MaxSegmentSize returns the number of bytes of a full TCP segment, 0 if it is unknown.
func (s *Stream) MaxSegmentSize() int {
	n, err := unix.GetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	if err != nil {
		return 0
	}
	return n
}

// maxIovecs is the maximum number of buffers of a system call (IOV_MAX).
const maxIovecs = 1024

// setBuffers fills in the header of a system call.
func (s *Stream) setBuffers(bufs [][]byte) {
	s.vec = s.vec[:0]
	for _, b := range bufs[:min(len(bufs), maxIovecs)] {
		if len(b) > 0 {
			v := unix.Iovec{Base: &b[0]}
			v.SetLen(len(b))
			s.vec = append(s.vec, v)
		}
	}
	s.msg.Iov = unsafe.SliceData(s.vec)
	s.msg.SetIovlen(len(s.vec))
}

// Read reads into bufs and returns the number of bytes. It does not block: again is set if there are
// none. At the end of the stream it returns io.EOF, and for inaccessible memory EFAULT.
func (s *Stream) Read(bufs [][]byte) (n int, again bool, err error) {
	s.setBuffers(bufs)
	for {
		got, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.msg)), unix.MSG_DONTWAIT)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return 0, true, nil
		case errno != 0:
			return 0, false, os.NewSyscallError("recvmsg", errno)
		case got == 0:
			return 0, false, io.EOF
		}
		return int(got), false, nil
	}
}

// Write writes bufs and returns the number of bytes that TCP takes, which may be 0. It does not block.
func (s *Stream) Write(bufs [][]byte) (n int, err error) {
	s.setBuffers(bufs)
	for {
		put, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.msg)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return 0, nil
		case errno != 0:
			return 0, os.NewSyscallError("sendmsg", errno)
		}
		return int(put), nil
	}
}

// WatchEvents selects the events of the stream: that it is readable, and that it is writable.
func (s *Stream) WatchEvents(readable, writable bool) {
	var events uint32
	if readable {
		events |= unix.EPOLLIN
	}
	if writable {
		events |= unix.EPOLLOUT
	}
	if s.events != events {
		s.events = events
		_ = s.tcp.set.Modify(s.fd, events, int(s.id))
	}
}

// WatchesWritable reports whether the events include that the stream is writable.
func (s *Stream) WatchesWritable() bool { return s.events&unix.EPOLLOUT != 0 }

// A closed stream waits until the peer has closed it, too, or its system has acknowledged everything,
// for at most maxLinger. It looks for the latter every lingerInterval.
const (
	maxLinger      = time.Second
	lingerInterval = 2 * time.Millisecond
)

// Close ends the stream. The peer gets all data that was written: closing a socket with unread data
// resets the connection, which would discard data on its way, so a goroutine reads until the peer's
// system has everything.
func (s *Stream) Close() {
	_ = s.tcp.set.Remove(s.fd)
	unix.Shutdown(s.fd, unix.SHUT_WR)
	f := os.NewFile(uintptr(s.fd), "tcp")
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return
	}
	s.tcp.lingers.Add(1)
	go func() {
		defer s.tcp.lingers.Done()
		defer conn.Close()
		for end := time.Now().Add(maxLinger); time.Now().Before(end); {
			conn.SetReadDeadline(time.Now().Add(lingerInterval))
			if _, err := io.Copy(io.Discard, conn); !errors.Is(err, os.ErrDeadlineExceeded) || !hasUnacknowledged(conn) {
				return
			}
		}
	}()
}

// HasInput reports whether a connection has data that was not read, has ended or has failed.
func HasInput(c *net.TCPConn) (has bool) {
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
			has = err != unix.EAGAIN
		})
	}
	return has || err != nil
}

// hasUnacknowledged reports whether bytes or the end of a connection are not acknowledged.
func hasUnacknowledged(c net.Conn) bool {
	n := 0
	if raw, err := c.(syscall.Conn).SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	}
	return n > 0
}
