//go:build unix

package tcp

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// writeToFD writes as much of a list of buffers as a non-blocking socket accepts.
func writeToFD(fd int, list [][]byte) (int, error) {
	n, err := ignoringEINTR(func() (int, error) { return writeVector(fd, list) })
	switch err {
	case nil:
		return n, nil
	case unix.EAGAIN:
		return max(n, 0), nil
	}
	return max(n, 0), os.NewSyscallError("write", err)
}

// ignoringEINTR repeats a system call that a signal has interrupted.
func ignoringEINTR(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}

// tryWrite writes as much of a list of buffers as the system accepts.
func tryWrite(conn *net.TCPConn, list [][]byte) (n int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	rawErr := raw.Write(func(fd uintptr) bool {
		n, err = writeToFD(int(fd), list)
		return true // do not block
	})
	if rawErr != nil {
		return n, rawErr
	}
	return n, err
}
