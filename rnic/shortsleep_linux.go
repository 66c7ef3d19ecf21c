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
	timer      *os.File // nil if unavailable
	raw        syscall.RawConn
	armTimer   func(fd uintptr)      // makes the timer readable after length
	drainTimer func(fd uintptr) bool // reads the timer; os.File.Read would allocate its error
	count      [8]byte

	duration time.Duration
	err      error // of set
}

func newShortSleeper() *shortSleeper {
	n := &shortSleeper{}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return n
	}
	n.timer = os.NewFile(uintptr(fd), "timerfd")
	if n.raw, err = n.timer.SyscallConn(); err != nil {
		n.close()
		return &shortSleeper{}
	}
	n.armTimer = func(fd uintptr) {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(n.duration, 1)))}
		n.err = unix.TimerfdSettime(int(fd), 0, &spec, nil)
	}
	n.drainTimer = func(fd uintptr) bool {
		_, err := unix.Read(int(fd), n.count[:])
		return err == nil
	}
	return n
}

func (n *shortSleeper) sleep(d time.Duration) {
	if n.timer != nil {
		n.duration = d
		if n.timer.SetReadDeadline(time.Now().Add(d)) == nil && n.raw.Control(n.armTimer) == nil && n.err == nil {
			if err := n.raw.Read(n.drainTimer); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				return
			}
		}
	}
	time.Sleep(d)
}

func (n *shortSleeper) close() {
	if n.timer != nil {
		n.timer.Close()
	}
}
