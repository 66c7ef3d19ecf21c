package rnic

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// shortSleeper sleeps for less than a millisecond, which the runtime's timers do not where
// a processor is idle: they end with epoll_wait(2), whose time is in milliseconds. A
// timerfd wakes that by itself. Where goroutines keep all processors busy it is the
// other way round: timers are looked at with every switch, the network every 10 ms. So
// both are set. One goroutine has it.
type shortSleeper struct {
	timer      *os.File // nil: there is none
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
