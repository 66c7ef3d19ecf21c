//go:build unix

package link

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

func (o socketOption) apply(fd uintptr) error {
	return os.NewSyscallError("setsockopt "+o.name, unix.SetsockoptInt(int(fd), o.level, o.optname, o.value))
}

// bufferSizes returns the sizes of a socket's buffers in bytes; 0 if unknown.
func bufferSizes(fd uintptr) (recv, send int) {
	recv, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	send, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	if runtime.GOOS == "linux" { // reports the double, for its own structures
		return recv / 2, send / 2
	}
	return recv, send
}
