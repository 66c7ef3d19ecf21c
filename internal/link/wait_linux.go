package link

import (
	"encoding/binary"
	"math"
	"net"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waiter is the state shared by Wait and Wake.
//
//	Wake: woken = true; if someone is waiting, write the eventfd
//	Wait: waiters++;    if woken, return;      poll socket and eventfd
//
// The order makes sure that a Wake is either seen before the poll or ends it,
// and a Wake with nobody waiting costs no system call.
type waiter struct {
	waiters atomic.Int32
	woken   atomic.Bool
}

// Wait implements Conn: a poll in a real blocking system call. A goroutine
// that locks its thread is back some 20 us after a datagram came, half of what
// Go's netpoller takes. Nanosecond timeouts are as good as the thread's timer
// slack, see LowerTimerSlack.
func (c *udp) Wait(timeout time.Duration) (bool, error) {
	if !c.enter(waiting) {
		return false, net.ErrClosed
	}
	defer c.leave(waiting)
	c.waiters.Add(1)
	defer c.waiters.Add(-1)
	if c.woken.Swap(false) {
		timeout = 0 // only look
	}
	readable, signalled, err := c.poll(timeout)
	if signalled {
		c.woken.Swap(false) // not Store: what the waker wrote before is visible after
	}
	if c.closed.Load() {
		return false, net.ErrClosed
	}
	return readable, err
}

// poll waits for the socket or the eventfd, and resets the eventfd.
func (c *udp) poll(timeout time.Duration) (readable, signalled bool, err error) {
	fds := [2]unix.PollFd{
		{Fd: int32(c.fd), Events: unix.POLLIN},
		{Fd: int32(c.event), Events: unix.POLLIN},
	}
	n, errno := ppoll(fds[:], timeout)
	if errno != 0 {
		return false, false, errno
	}
	if n > 0 && fds[1].Revents != 0 && !c.closed.Load() {
		var counter [8]byte
		unix.Read(c.event, counter[:])
		signalled = true
	}
	return fds[0].Revents != 0, signalled, nil
}

// ppoll is ppoll(2) without a signal mask. The system call, unlike the C
// library's function, writes the remaining time back, so that starting over
// after a signal (Go preempts with them) keeps the deadline.
func ppoll(fds []unix.PollFd, timeout time.Duration) (int, unix.Errno) {
	var limit *unix.Timespec
	if timeout >= 0 {
		ts := unix.NsecToTimespec(min(int64(timeout), math.MaxInt32*int64(time.Second)))
		limit = &ts
	}
	for {
		n, _, errno := ppollCall(timeout == 0, fds, limit)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

// ppollCall tells the scheduler only of a call that may block.
func ppollCall(look bool, fds []unix.PollFd, limit *unix.Timespec) (uintptr, uintptr, unix.Errno) {
	if look {
		return unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(limit)), 0, 0, 0)
	}
	return unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(limit)), 0, 0, 0)
}

// Wake implements Conn.
func (c *udp) Wake() {
	if !c.woken.Swap(true) && c.waiters.Load() > 0 && c.enter(waking) {
		c.signal()
		c.leave(waking)
	}
}

// signal makes the eventfd readable.
func (c *udp) signal() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	unix.Write(c.event, one[:])
}
