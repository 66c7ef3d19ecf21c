package sdpbench

import (
	"time"

	"github.com/softrnic/softrnic/sdp"
)

// A usage is how full the two buffers of an end were on average, of 1.
type usage struct{ send, receive float64 }

// A gauge begins to measure how full the buffers of an end are; what it returns ends
// that.
type gauge func() (end func() usage)

// measure asks the end's gauge, if there is one and somebody wants to know.
func (e *end) measure(wanted bool) (end func() usage) {
	if !wanted || e.gauge == nil {
		return func() usage { return usage{} }
	}
	return e.gauge()
}

// meterGauge is that of a connection by SDP, which knows exactly.
func meterGauge(c *sdp.Conn) gauge {
	return func() func() usage {
		stop, size := c.MeasureUse(), float64(c.Stats().BufferSize)
		return func() usage {
			u := stop()
			return usage{u.Send / size, u.Receive / size}
		}
	}
}

// sampleEvery is the time from one look at a socket's buffers to the next.
const sampleEvery = 200 * time.Microsecond

// sampleGauge is one that looks now and then.
func sampleGauge(look func() usage) gauge {
	return func() func() usage {
		stop, done := make(chan struct{}), make(chan struct{})
		var sum usage
		n := 0
		go func() {
			defer close(done)
			ticks := time.NewTicker(sampleEvery)
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
