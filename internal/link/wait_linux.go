package link

import (
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/epoll"
)

// waiter is the state shared by Wait and Wake. A blocked wait is an epoll_wait
// on the socket, the eventfd of Wake and Close, and a timerfd.
type waiter struct {
	set *epoll.Set
	lazyTimer
}

// IDs of the descriptors in the set.
const (
	socketID = iota
	timerID
)

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
func (w *waiter) openFDs(socket int) error {
	if err := w.openSet(); err != nil {
		return err
	}
	return w.set.Add(socket, unix.EPOLLIN, socketID)
}

// openSet creates the descriptors.
func (w *waiter) openSet() (err error) {
	w.lazyTimer.fd = -1
	if w.set, err = epoll.Open(); err != nil {
		return err
	}
	if w.lazyTimer.fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return os.NewSyscallError("timerfd_create", err)
	}
	return w.set.Add(w.lazyTimer.fd, unix.EPOLLIN, timerID)
}

// closeFDs closes the descriptors.
func (w *waiter) closeFDs() {
	if w.set != nil {
		w.set.Close()
	}
	if w.lazyTimer.fd >= 0 {
		unix.Close(w.lazyTimer.fd)
	}
}

// Wait implements Conn. It blocks the thread in a system call, which wakes a
// goroutine locked to its thread in about half the time of Go's netpoller.
func (c *udp) Wait(timeout time.Duration) (bool, error) {
	if !c.enter(callWait) {
		return false, net.ErrClosed
	}
	defer c.exit(callWait)
	readable, err := c.waitEvents(timeout)
	if c.closed.Load() {
		return false, net.ErrClosed
	}
	return readable, err
}

// waitEvents waits for the socket, a Wake or the timer, and resets the latter two.
func (c *udp) waitEvents(timeout time.Duration) (readable bool, err error) {
	if timeout > 0 {
		if err := c.lazyTimer.arm(timeout); err != nil {
			return false, err
		}
	}
	var events [3]unix.EpollEvent
	n, _, err := c.set.Wait(events[:], timeout == 0)
	for _, e := range events[:n] {
		switch e.Fd {
		case socketID:
			readable = true
			if e.Events&unix.EPOLLERR != 0 {
				c.errQueueReady.Store(true)
			}
		case timerID:
			c.clear()
		}
	}
	return readable, err
}

// Wake implements Conn.
func (c *udp) Wake() {
	if c.set.BeginWake() && c.enter(callWake) {
		c.set.Interrupt()
		c.exit(callWake)
	}
}

// WakeFD returns an eventfd(2): writing it makes the current or the next Wait return, also from
// another process.
func (c *udp) WakeFD() int { return c.set.WakeFD() }
