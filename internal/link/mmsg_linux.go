package link

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr of sendmmsg(2): a message and, after the call, how
// many bytes of it were sent or received.
type mmsghdr struct {
	unix.Msghdr
	bytes uint32
}

// The calls below have MSG_DONTWAIT, so they never block, and go to the kernel
// by RawSyscall: the Go scheduler's bookkeeping around a system call that may
// block is a sizeable part of a 3 microsecond round trip. Only sendBlocking
// tells the scheduler.

// sendmsg sends one message of one iovec. Without control messages sendto does
// the same and spares the kernel fetching the structures: some 100 ns.
func sendmsg(fd int, m *mmsghdr) unix.Errno {
	var n uintptr
	var errno unix.Errno
	if m.Control == nil && m.Iovlen == 1 {
		n, _, errno = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(m.Iov.Base)), uintptr(m.Iov.Len),
			unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(m.Name)), uintptr(m.Namelen))
	} else {
		n, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.Msghdr)), unix.MSG_DONTWAIT)
	}
	m.bytes = uint32(n)
	return errno
}

func sendmmsg(fd int, m []mmsghdr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
	return count(n, errno)
}

func sendBlocking(fd int, m *mmsghdr) unix.Errno {
	n, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.Msghdr)), 0)
	m.bytes = uint32(n)
	return errno
}

func recvmsg(fd int, m *mmsghdr) unix.Errno {
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.Msghdr)), unix.MSG_DONTWAIT)
	m.bytes = uint32(n)
	return errno
}

func recvmmsg(fd int, m []mmsghdr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
	return count(n, errno)
}

// count turns the -1 of a failed call into no messages.
func count(n uintptr, errno unix.Errno) (int, unix.Errno) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
