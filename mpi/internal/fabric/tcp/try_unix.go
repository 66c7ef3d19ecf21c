//go:build unix

package tcp

import (
	"net"

	"golang.org/x/sys/unix"
)

// tryWrite writes as much as the socket accepts without blocking, and returns the
// number of bytes.
func tryWrite(c *net.TCPConn, a, b []byte) (n int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Write(func(fd uintptr) bool {
		if len(b) == 0 {
			n, err = unix.Write(int(fd), a)
		} else {
			n, err = writev(int(fd), a, b)
		}
		return true // do not block
	})
	return max(n, 0)
}
