package rnic

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A shortSleeper sleeps for less than a millisecond. The runtime's timers
// cannot while a processor is idle, because they end with epoll_wait(2), whose
// timeout is in milliseconds; a timerfd wakes that call by itself. While
// goroutines keep all processors busy, timers are checked with every switch and
// the network only every 10 ms. So it sets both. It belongs to one goroutine.
type shortSleeper struct {
	timer *os.File // nil if unavailable
	fd    int      // of timer
	raw   syscall.RawConn
	drain func(fd uintptr) bool // reads the timer; os.File.Read would allocate its error
	count [8]byte
}

func newShortSleeper() *shortSleeper {
	n := &shortSleeper{}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return n
	}
	n.timer, n.fd = os.NewFile(uintptr(fd), "timerfd"), fd
	if n.raw, err = n.timer.SyscallConn(); err != nil {
		n.close()
		return &shortSleeper{}
	}
	n.drain = func(fd uintptr) bool {
		_, err := unix.Read(int(fd), n.count[:])
		return err == nil
	}
	return n
}

func (n *shortSleeper) sleep(d time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	if n.timer != nil && n.timer.SetReadDeadline(time.Now().Add(d)) == nil && unix.TimerfdSettime(n.fd, 0, &spec, nil) == nil {
		if err := n.raw.Read(n.drain); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
	time.Sleep(d)
}

func (n *shortSleeper) close() {
	if n.timer != nil {
		n.timer.Close()
	}
}
