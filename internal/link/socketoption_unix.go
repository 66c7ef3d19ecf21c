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

// bufferSizes reads what a socket's buffers hold, bytes; 0 when unknown.
func bufferSizes(fd uintptr) (recv, send int) {
	recv, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	send, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	if runtime.GOOS == "linux" { // reports the double, for its own structures
		return recv / 2, send / 2
	}
	return recv, send
}
