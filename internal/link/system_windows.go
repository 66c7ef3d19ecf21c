package link

import (
	"os"

	"golang.org/x/sys/windows"
)

func (o socketOption) apply(fd uintptr) error {
	return os.NewSyscallError("setsockopt "+o.name, windows.SetsockoptInt(windows.Handle(fd), o.level, o.optname, o.value))
}

// bufferSizes returns the sizes of a socket's buffers in bytes; 0 if unknown.
func bufferSizes(fd uintptr) (recv, send int) {
	recv, _ = windows.GetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, windows.SO_RCVBUF)
	send, _ = windows.GetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, windows.SO_SNDBUF)
	return recv, send
}

func dontFragmentOption(v6 bool) socketOption {
	if v6 {
		return socketOption{"IPV6_DONTFRAG", windows.IPPROTO_IPV6, 14, 1}
	}
	return socketOption{"IP_DONTFRAGMENT", windows.IPPROTO_IP, 14, 1}
}

// Winsock has error numbers of its own beside those of package syscall.
const (
	errAddrInUse    = windows.WSAEADDRINUSE
	errAddrNotAvail = windows.WSAEADDRNOTAVAIL
	errNoFamily     = windows.WSAEAFNOSUPPORT
)
