package link

import (
	"encoding/binary"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waiter is the state shared by Wait and Wake. A blocked wait is an epoll_wait
// on the socket, an eventfd and a timerfd, which stay registered: poll(2) would
// join and leave the wait queues of all of them each time.
//
//	Wake: woken = true; if someone is waiting, write the eventfd
//	Wait: waiters++;    if woken, return;      wait for socket, eventfd, timerfd
//
// The order ensures that a Wake is either seen before the wait or ends it. A Wake
// without a waiter costs no system call.
type waiter struct {
	waiters atomic.Int32
	woken   atomic.Bool
	epoll   int
	eventfd int // eventfd, written by Wake and Close
	lazyTimer
}

// A lazyTimer is a timerfd that is set as rarely as possible. Setting and
// cancelling a timer for each wait, as a timeout of epoll_wait would, programs
// the processor's timer each time, which takes a microsecond on virtual
// machines, and deadlines mostly move later. So a timer that is due too early
// stays: the wait returns early, and the next one sets the timer anew.
type lazyTimer struct {
	fd       int // timerfd
	mu       sync.Mutex
	deadline time.Time // expiry, zero if not set
}

// arm makes the timer expire after timeout, or earlier.
func (a *lazyTimer) arm(timeout time.Duration) error {
	at := time.Now().Add(timeout)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.deadline.IsZero() && !a.deadline.After(at) {
		return nil
	}
	a.deadline = at
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(timeout, 1)))}
	return os.NewSyscallError("timerfd_settime", unix.TimerfdSettime(a.fd, 0, &spec, nil))
}

// clear records that the timer has expired.
func (a *lazyTimer) clear() {
	var count [8]byte
	a.mu.Lock()
	unix.Read(a.fd, count[:])
	a.deadline = time.Time{}
	a.mu.Unlock()
}

// openFDs creates the descriptors and registers the socket.
func (w *waiter) openFDs(socket int) (err error) {
	w.epoll, w.eventfd, w.lazyTimer.fd = -1, -1, -1
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if w.eventfd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	if w.lazyTimer.fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return os.NewSyscallError("timerfd_create", err)
	}
	for _, fd := range []int{socket, w.eventfd, w.lazyTimer.fd} {
		if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return os.NewSyscallError("epoll_ctl", err)
		}
	}
	return nil
}

// closeFDs closes the descriptors.
func (w *waiter) closeFDs() {
	for _, fd := range []int{w.epoll, w.eventfd, w.lazyTimer.fd} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// Wait implements Conn. It blocks the thread in a system call, which wakes a
// goroutine locked to its thread in about half the time of Go's netpoller.
func (c *udp) Wait(timeout time.Duration) (bool, error) {
	if !c.enter(callWait) {
		return false, net.ErrClosed
	}
	defer c.exit(callWait)
	c.waiters.Add(1)
	defer c.waiters.Add(-1)
	if c.woken.Swap(false) {
		timeout = 0 // check only
	}
	readable, signalled, err := c.waitEvents(timeout)
	if signalled {
		c.woken.Swap(false) // not Store: synchronizes with the waker
	}
	if c.closed.Load() {
		return false, net.ErrClosed
	}
	return readable, err
}

// waitEvents waits for the socket, the eventfd or the timer, and resets the
// latter two.
func (c *udp) waitEvents(timeout time.Duration) (readable, signalled bool, err error) {
	if timeout > 0 {
		if err := c.lazyTimer.arm(timeout); err != nil {
			return false, false, err
		}
	}
	var events [3]unix.EpollEvent
	n, errno := epollWait(c.epoll, events[:], timeout == 0)
	if errno != 0 {
		return false, false, errno
	}
	for _, e := range events[:n] {
		switch int(e.Fd) {
		case c.fd:
			readable = true
			if e.Events&unix.EPOLLERR != 0 {
				c.errQueueReady.Store(true)
			}
		case c.lazyTimer.fd:
			c.clear()
		case c.eventfd:
			if !c.closed.Load() {
				var counter [8]byte
				unix.Read(c.eventfd, counter[:])
				signalled = true
			}
		}
	}
	return readable, signalled, nil
}

// epollWait is epoll_wait(2). It tells the Go scheduler only of a call that may
// block.
func epollWait(epoll int, events []unix.EpollEvent, look bool) (int, unix.Errno) {
	for {
		var n uintptr
		var errno unix.Errno
		if look {
			n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
		} else {
			forever := -1
			n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(forever), 0, 0)
		}
		if errno != unix.EINTR { // Go preempts with signals
			return int(n), errno
		}
	}
}

// Wake implements Conn.
func (c *udp) Wake() {
	if !c.woken.Swap(true) && c.waiters.Load() > 0 && c.enter(callWake) {
		c.writeEventfd()
		c.exit(callWake)
	}
}

// writeEventfd makes the eventfd readable.
func (c *udp) writeEventfd() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	unix.Write(c.eventfd, one[:])
}
