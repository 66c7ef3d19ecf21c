//go:build unix

package server

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Pair makes the connection of a rank to its manager (socketpair(2)): our end, for Serve,
// and the one that the rank is started with, whose number there PMI_FD tells. No
// other process that is started meanwhile inherits them. Both are the caller's to close.
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
