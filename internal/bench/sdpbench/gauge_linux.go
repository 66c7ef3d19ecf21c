package sdpbench

import (
	"net"

	"golang.org/x/sys/unix"
)

// doubled is how many times the memory that was asked for the system gives a
// socket buffer, for what it keeps there beside the data (socket(7)).
const doubled = 2

// socketGauge is that of a TCP connection whose socket buffers have size bytes
// each: what they hold of data, whatever that costs them.
func socketGauge(c *net.TCPConn, size int) gauge {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	return sampleGauge(func() (u usage) {
		_ = raw.Control(func(fd uintptr) { // fails only if the connection is closed
			out, _ := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
			in, _ := unix.IoctlGetInt(int(fd), unix.SIOCINQ)
			u = usage{float64(out) / float64(size), float64(in) / float64(size)}
		})
		return u
	})
}
