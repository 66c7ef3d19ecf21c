package rnic

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// napper sleeps for less than a millisecond, which the runtime's timers do not where
// a processor is idle: they end with epoll_wait(2), whose time is in milliseconds. A
// timerfd wakes that by itself.
type napper struct{ timer *os.File }

func newNapper() napper {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return napper{}
	}
	return napper{os.NewFile(uintptr(fd), "timerfd")}
}

func (n napper) sleep(d time.Duration) {
	if n.timer != nil && n.set(d) == nil {
		var count [8]byte
		if _, err := n.timer.Read(count[:]); err == nil {
			return
		}
	}
	time.Sleep(d)
}

// set makes the timer readable after d.
func (n napper) set(d time.Duration) (err error) {
	raw, err := n.timer.SyscallConn()
	if err != nil {
		return err
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	control := raw.Control(func(fd uintptr) { err = unix.TimerfdSettime(int(fd), 0, &spec, nil) })
	if err == nil {
		err = control
	}
	return err
}

func (n napper) close() {
	if n.timer != nil {
		n.timer.Close()
	}
}
