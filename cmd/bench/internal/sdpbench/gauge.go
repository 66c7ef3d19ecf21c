package sdpbench

import "github.com/softrnic/softrnic/sdp"

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
