//go:build unix

package pmi

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// openInherited opens a socket that the process was started with. Descriptors opened by
// Go are close-on-exec, so one that is not was inherited; using another one, because a
// child of a rank has the rank's environment, would break its owner.
func openInherited(fd int) (net.Conn, error) {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return nil, errors.New("descriptor not inherited: opened by this process, or this process is a child of a rank; unset PMI_FD and PMI_RANK then")
	}
	if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return nil, errors.New("descriptor is not a socket")
	}
	f := os.NewFile(uintptr(fd), "PMI_FD")
	defer f.Close() // FileConn has one of its own
	return net.FileConn(f)
}
