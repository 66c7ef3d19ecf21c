package congestion

import "github.com/softrnic/softrnic/reliability"

// A Controller is the congestion control of the packets that one end of a connection sends.
type Controller interface {
	// OnSent records that a packet leaves.
	OnSent(now reliability.Time, bytes int)
	// OnAck records an acknowledgement of new bytes.
	OnAck(now reliability.Time, a Ack)
	// OnMark records a congestion notification, and reports whether it reduced a limit.
	OnMark(now reliability.Time) (reduced bool)
	// OnLoss records that a packet was lost, and reports whether it reduced a limit.
	OnLoss(now reliability.Time) (reduced bool)
	// OnTimeout records that no response arrived at all.
	OnTimeout(now reliability.Time)

	// Window returns the number of bytes that may be in flight. It may be less than a packet:
	// then one packet may be in flight, and the pacer separates it from the next.
	Window() int
	// NextSend returns the time from which the next packet may leave: now or earlier if it may
	// leave at once.
	NextSend(now reliability.Time) reliability.Time
	// Rate returns the rate of the pacer in bytes a second, 0 if it is unlimited.
	Rate() int64
}

// An Ack describes an acknowledgement.
type Ack struct {
	Bytes    int   // newly acknowledged
	InFlight int   // bytes in flight before it
	RTT      int64 // sample of the round-trip time in nanoseconds, or 0
}

// A Config describes a flow.
type Config struct {
	Packet    int // bytes of a full packet in the window
	MaxWindow int // bytes; upper limit of the window
}

// A rule computes the limits of a flow.
type rule interface {
	onSent(now reliability.Time, bytes int)
	onAck(now reliability.Time, a Ack)
	onMark(now reliability.Time) (reduced bool)
	onLoss(now reliability.Time) (reduced bool)
	onTimeout(now reliability.Time)
	// limits returns the window in bytes and the rate in bytes a second, of which 0 is unlimited.
	limits(now reliability.Time) (window, rate float64)
}

// New returns the controller of a mode, which is not Off.
func New(mode Mode, c Config) Controller {
	f := &flow{maxWindow: float64(c.MaxWindow), pacer: pacer{packet: c.Packet}}
	if mode == Delay || mode == Auto {
		f.rules = append(f.rules, newDelayRule(c))
	}
	if mode == DCQCN || mode == Auto {
		f.rules = append(f.rules, &dcqcn{packet: float64(c.Packet)})
	}
	f.update(0)
	return f
}

// A flow is a Controller: some rules, of which the strictest one holds, and a pacer.
type flow struct {
	rules     []rule
	maxWindow float64
	window    float64
	rate      float64
	pacer     pacer
}

// update takes the limits of the rules.
func (f *flow) update(now reliability.Time) {
	f.window, f.rate = f.maxWindow, 0
	for _, r := range f.rules {
		window, rate := r.limits(now)
		if window > 0 {
			f.window = min(f.window, window)
		}
		if rate > 0 && (f.rate == 0 || rate < f.rate) {
			f.rate = rate
		}
	}
}

// OnSent implements Controller.
func (f *flow) OnSent(now reliability.Time, bytes int) {
	for _, r := range f.rules {
		r.onSent(now, bytes)
	}
	f.pacer.onSent(bytes, f.rate)
}

// OnAck implements Controller.
func (f *flow) OnAck(now reliability.Time, a Ack) {
	for _, r := range f.rules {
		r.onAck(now, a)
	}
	f.update(now)
}

// OnMark implements Controller.
func (f *flow) OnMark(now reliability.Time) (reduced bool) {
	for _, r := range f.rules {
		reduced = r.onMark(now) || reduced
	}
	f.update(now)
	return reduced
}

// OnLoss implements Controller.
func (f *flow) OnLoss(now reliability.Time) (reduced bool) {
	for _, r := range f.rules {
		reduced = r.onLoss(now) || reduced
	}
	f.update(now)
	return reduced
}

// OnTimeout implements Controller.
func (f *flow) OnTimeout(now reliability.Time) {
	for _, r := range f.rules {
		r.onTimeout(now)
	}
	f.update(now)
}

// Window implements Controller.
func (f *flow) Window() int { return int(f.window) }

// Rate implements Controller.
func (f *flow) Rate() int64 { return int64(f.rate) }

// NextSend implements Controller.
func (f *flow) NextSend(now reliability.Time) reliability.Time {
	if f.rate == 0 {
		return now
	}
	f.update(now)
	return f.pacer.nextSend(now, f.rate)
}
