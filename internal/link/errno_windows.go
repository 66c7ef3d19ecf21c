package link

import "golang.org/x/sys/windows"

// Winsock has error numbers of its own beside those of package syscall.
const (
	errAddrInUse    = windows.WSAEADDRINUSE
	errAddrNotAvail = windows.WSAEADDRNOTAVAIL
	errNoFamily     = windows.WSAEAFNOSUPPORT
)
