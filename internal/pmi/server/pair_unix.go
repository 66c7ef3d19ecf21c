//go:build unix

package server

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// CanPair reports whether processes inherit sockets here, so that Pair works.
const CanPair = true

// Pair returns the two ends of a connection between the manager and a rank
// (socketpair(2)): ours for Serve, theirs for the rank's process, whose descriptor
// there is PMI_FD. Both are close-on-exec, so that no other process inherits them. The
// caller closes both.
func Pair() (ours net.Conn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	f := os.NewFile(uintptr(fds[0]), "manager")
	defer f.Close()
	theirs = os.NewFile(uintptr(fds[1]), "rank")
	if ours, err = net.FileConn(f); err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}
