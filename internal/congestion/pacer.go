package congestion

import "github.com/softrnic/softrnic/reliability"

const (
	// burstTime is the length of a burst in nanoseconds at the rate of the flow: a burst is a
	// timer and a system call, and the bursts of all flows through a bottleneck can meet in
	// their queue.
	burstTime = 250 * reliability.Microsecond
	// maxBurst bounds a burst in bytes: a GSO batch stays whole.
	maxBurst = 64 << 10
	// maxLateness is the time in nanoseconds for which a flow whose timer is late, or that had
	// nothing to send, may catch up: a time slice of a busy host. The window bounds the burst.
	maxLateness = 4 * reliability.Millisecond
)

// A pacer separates bursts so that they have a rate. It is a virtual clock: each packet moves the
// earliest time of the next burst on by its length at the rate.
type pacer struct {
	packet int              // bytes of a full packet
	next   reliability.Time // of the next burst
	left   int              // bytes left of the current burst
}

// nextSend returns the time from which the next packet may leave at rate bytes a second.
func (p *pacer) nextSend(now reliability.Time, rate float64) reliability.Time {
	if p.left > 0 {
		return now
	}
	if now < p.next {
		return p.next
	}
	p.next = max(p.next, now-maxLateness)
	p.left = int(min(max(rate*burstTime/1e9, float64(p.packet)), maxBurst))
	return now
}

// onSent records a packet.
func (p *pacer) onSent(bytes int, rate float64) {
	if rate > 0 {
		p.left -= bytes
		p.next += reliability.Time(float64(bytes) / rate * 1e9)
	}
}
