package sdpbench

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// sockBufFactor is the ratio of a socket buffer to the requested size: the kernel doubles it
// for bookkeeping (socket(7)).
const sockBufFactor = 2

// socketGauge returns the gauge of a TCP connection with socket buffers of size bytes. It
// counts the data bytes only.
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

// sampleInterval is the time between two samples of a socket's buffers.
const sampleInterval = 200 * time.Microsecond

// sampleGauge returns a gauge that calls sample periodically.
func sampleGauge(sample func() usage) gauge {
	return func() func() usage {
		stop, done := make(chan struct{}), make(chan struct{})
		var sum usage
		n := 0
		go func() {
			defer close(done)
			ticks := time.NewTicker(sampleInterval)
			defer ticks.Stop()
			for {
				select {
				case <-ticks.C:
					u := sample()
					sum.send, sum.receive, n = sum.send+u.send, sum.receive+u.receive, n+1
				case <-stop:
					return
				}
			}
		}()
		return func() usage {
			close(stop)
			<-done
			return usage{sum.send / float64(max(n, 1)), sum.receive / float64(max(n, 1))}
		}
	}
}
