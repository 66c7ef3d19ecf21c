package sdpbench

import (
	"time"

	"github.com/softrnic/softrnic/sdp"
)

// A gauge tells how full the two buffers of an end are, of 1, in a stream of
// Writes of size bytes. It may be asked from any goroutine.
type gauge func(size int) (send, receive float64)

// statsGauge is that of a connection by SDP.
func statsGauge(c *sdp.Conn, buffers int) gauge {
	return func(size int) (send, receive float64) { return use(c.Stats(), size, buffers) }
}

// use is how full the buffers are by a connection's word. A buffer of the
// credit-based design is not free until its credit has come back, whoever
// holds the message meanwhile.
func use(s sdp.Stats, size, buffers int) (send, receive float64) {
	used := s.SendUsed
	if s.Design == sdp.Credit {
		used = max(used, (buffers-s.Credits)*min(size, s.BufferSize/buffers))
	}
	return float64(used) / float64(s.BufferSize), float64(s.ReceiveUsed) / float64(s.BufferSize)
}

// sampler asks a gauge now and then.
type sampler struct {
	stop, done    chan struct{}
	send, receive float64 // sums
	n             int
}

// sample asks the end's gauge so often, until end is called; with 0 or without a
// gauge, never.
func (e *end) sample(every time.Duration, size int) *sampler {
	s := &sampler{stop: make(chan struct{}), done: make(chan struct{})}
	if every == 0 || e.gauge == nil {
		close(s.done)
		return s
	}
	go func() {
		defer close(s.done)
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				send, receive := e.gauge(size)
				s.send, s.receive, s.n = s.send+send, s.receive+receive, s.n+1
			case <-s.stop:
				return
			}
		}
	}()
	return s
}

// end stops and returns the means.
func (s *sampler) end() (send, receive float64) {
	close(s.stop)
	<-s.done
	n := float64(max(s.n, 1))
	return s.send / n, s.receive / n
}
