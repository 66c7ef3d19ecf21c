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
// on the socket, an eventfd and a timerfd, which the epoll descriptor watches
// all along: poll(2) would join and leave the queues of all of them each time.
//
//	Wake: woken = true; if someone is waiting, write the eventfd
//	Wait: waiters++;    if woken, return;      wait for socket, eventfd, timerfd
//
// The order makes sure that a Wake is either seen before the wait or ends it,
// and a Wake with nobody waiting costs no system call.
type waiter struct {
	waiters atomic.Int32
	woken   atomic.Bool
	epoll   int
	eventfd int // eventfd, written by Wake and Close
	lazyTimer
}

// lazyTimer is a timerfd that is set as rarely as possible. Setting and cancelling
// a timer for each wait, as a timeout of epoll_wait would, costs a programming
// of the processor's own timer each, on virtual machines a microsecond; and
// deadlines mostly move later. So an alarm that comes too soon stays: the wait
// returns early, and the next one sets it anew.
type lazyTimer struct {
	fd       int // timerfd
	mu       sync.Mutex
	deadline time.Time // when it comes, zero if it is not set
}

// arm makes the alarm come after timeout, or earlier.
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

// clear notes that the alarm has come.
func (a *lazyTimer) clear() {
	var count [8]byte
	a.mu.Lock()
	unix.Read(a.fd, count[:])
	a.deadline = time.Time{}
	a.mu.Unlock()
}

// openFDs makes the descriptors, and watches the socket.
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

// Wait implements Conn: a real blocking system call. A goroutine that locks its
// thread is back some 20 us after a datagram came, half of what Go's netpoller
// takes.
func (c *udp) Wait(timeout time.Duration) (bool, error) {
	if !c.enter(callWait) {
		return false, net.ErrClosed
	}
	defer c.exit(callWait)
	c.waiters.Add(1)
	defer c.waiters.Add(-1)
	if c.woken.Swap(false) {
		timeout = 0 // only look
	}
	readable, signalled, err := c.waitEvents(timeout)
	if signalled {
		c.woken.Swap(false) // not Store: what the waker wrote before is visible after
	}
	if c.closed.Load() {
		return false, net.ErrClosed
	}
	return readable, err
}

// waitEvents waits for the socket, the eventfd or the alarm, and resets those two.
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

// epollWait is epoll_wait(2), and tells the scheduler only of a call that may
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
