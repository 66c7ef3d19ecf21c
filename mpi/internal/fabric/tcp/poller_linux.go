package tcp

import (
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/epoll"
	"github.com/softrnic/softrnic/internal/racesync"
)

// epollPoller is the poller of Linux. Its sockets are not with Go's netpoller, which would
// wake a thread for each arrival, also while a goroutine polls.
type epollPoller struct {
	set    *epoll.Set
	events [64]unix.EpollEvent
}

func newPoller() (poller, error) {
	set, err := epoll.Open()
	if err != nil {
		return nil, err
	}
	return &epollPoller{set: set}, nil
}

func (p *epollPoller) addConn(conn *net.TCPConn, rank int) (_ socket, err error) {
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &epollSocket{p: p, rank: rank}
	var failed error
	err = raw.Control(func(fd uintptr) { s.fd, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, os.NewSyscallError("fcntl", failed)); err != nil {
		return nil, err
	}
	if err := p.set.Add(s.fd, unix.EPOLLIN, rank); err != nil {
		_ = unix.Close(s.fd)
		return nil, err
	}
	return s, nil
}

func (p *epollPoller) waitEvents(poll bool) (int, error) {
	n, _, err := p.set.Wait(p.events[:], poll)
	return n, err
}

func (p *epollPoller) eventAt(i int) (rank int, readable, writable bool) {
	e := &p.events[i]
	return int(e.Fd), e.Events&^unix.EPOLLOUT != 0, e.Events&unix.EPOLLOUT != 0
}

func (p *epollPoller) wakeWaiter() { p.set.Wake() }
func (p *epollPoller) closeSet()   { p.set.Close() }

// epollSocket is a socket of an epollPoller.
type epollSocket struct {
	p       *epollPoller
	rank    int
	fd      int
	waiting bool // for the system to accept data
}

func (s *epollSocket) readOnce(b []byte) (int, error) {
	n, err := ignoringEINTR(func() (int, error) { return unix.Read(s.fd, b) })
	racesync.Acquire()
	switch {
	case err == unix.EAGAIN:
		return 0, nil
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (s *epollSocket) writeSome(list [][]byte) (int, error) {
	racesync.Release()
	return writeToFD(s.fd, list)
}

func (s *epollSocket) awaitWritable(on bool) {
	if s.waiting == on {
		return
	}
	s.waiting = on
	events := uint32(unix.EPOLLIN)
	if on {
		events |= unix.EPOLLOUT
	}
	_ = s.p.set.Modify(s.fd, events, s.rank) // fails only for a closed descriptor
}

func (s *epollSocket) endConn() {
	_ = s.p.set.Remove(s.fd)
	_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // fails if the peer has ended it
}

func (s *epollSocket) closeFD() error { return os.NewSyscallError("close", unix.Close(s.fd)) }
