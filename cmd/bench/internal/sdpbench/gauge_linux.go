package sdpbench

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// sockBufFactor is how many times the memory that was asked for the system gives a
// socket buffer, for what it keeps there beside the data (socket(7)).
const sockBufFactor = 2

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

// sampleInterval is the time from one look at a socket's buffers to the next.
const sampleInterval = 200 * time.Microsecond

// sampleGauge is one that looks now and then.
func sampleGauge(look func() usage) gauge {
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
					u := look()
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
