package epoll

import (
	"encoding/binary"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Set is a set of descriptors, and an eventfd that wakes a waiter:
//
//	Wake: woken = true; if someone is waiting, write the eventfd
//	Wait: waiters++;    if woken, do not block
//
// The order ensures that a Wake is either seen before the wait or ends it. A Wake
// without a waiter costs no system call. The descriptors stay registered between waits:
// poll(2) would join and leave the wait queues of all of them each time. All methods are
// safe for concurrent use, except Close.
type Set struct {
	waiters atomic.Int32
	woken   atomic.Bool
	epoll   int
	eventfd int
}

// wakeID is the ID of the eventfd.
const wakeID = -1

// Open returns an empty set.
func Open() (_ *Set, err error) {
	s := &Set{epoll: -1, eventfd: -1}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if s.eventfd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	return s, s.Add(s.eventfd, unix.EPOLLIN, wakeID)
}

// WakeFD returns the eventfd. Another process that has a duplicate wakes a waiter by writing it.
func (s *Set) WakeFD() int { return s.eventfd }

// Close closes the set. No call may be in progress.
func (s *Set) Close() {
	for _, fd := range []int{s.epoll, s.eventfd} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// Add adds a descriptor. Its events have id, at least 0, as their Fd. The descriptor
// leaves the set when it is closed.
func (s *Set) Add(fd int, events uint32, id int) error {
	return s.controlFD(unix.EPOLL_CTL_ADD, fd, events, id)
}

// Modify changes the events of a descriptor.
func (s *Set) Modify(fd int, events uint32, id int) error {
	return s.controlFD(unix.EPOLL_CTL_MOD, fd, events, id)
}

// Remove removes a descriptor before it is closed.
func (s *Set) Remove(fd int) error { return s.controlFD(unix.EPOLL_CTL_DEL, fd, 0, 0) }

func (s *Set) controlFD(op, fd int, events uint32, id int) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(s.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(id)}))
}

// Wait waits for events, if poll is false until there are some or Wake is called. It
// returns their number, and whether Wake was called.
func (s *Set) Wait(events []unix.EpollEvent, poll bool) (n int, woken bool, err error) {
	s.waiters.Add(1)
	defer s.waiters.Add(-1)
	woken = s.woken.Swap(false)
	n, errno := epollWait(s.epoll, events, poll || woken)
	if errno != 0 {
		return 0, woken, os.NewSyscallError("epoll_wait", errno)
	}
	for i := range events[:n] {
		if events[i].Fd != wakeID {
			continue
		}
		var counter [8]byte
		unix.Read(s.eventfd, counter[:])
		s.woken.Swap(false) // not Store: synchronizes with the waker
		events[i] = events[n-1]
		return n - 1, true, nil
	}
	return n, woken, nil
}

// epollWait is epoll_wait(2). It tells the Go scheduler only of a call that may block.
func epollWait(epoll int, events []unix.EpollEvent, poll bool) (int, unix.Errno) {
	for {
		var n uintptr
		var errno unix.Errno
		if poll {
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

// Wake makes the current Wait return, or the next one.
func (s *Set) Wake() {
	if s.BeginWake() {
		s.Interrupt()
	}
}

// BeginWake and Interrupt are the halves of Wake. Interrupt, which is a system call,
// follows if BeginWake returns true.
func (s *Set) BeginWake() bool { return !s.woken.Swap(true) && s.waiters.Load() > 0 }

// Interrupt makes the current Wait return. See BeginWake.
func (s *Set) Interrupt() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	unix.Write(s.eventfd, one[:])
}
