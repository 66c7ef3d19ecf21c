package congestion

import (
	"math"

	"github.com/softrnic/softrnic/reliability"
)

// Parameters of a flow beside flows that fill the buffer.
const (
	fullRounds    = 10                               // samples far above the target in a row that show such a flow
	fullShare     = 1.5                              // of the target
	fullDecrease  = 0.5                              // share of the window that must have been given up in vain meanwhile
	fillTime      = 10_000 * reliability.Millisecond // after which the delay is given another chance
	segment       = 1448.0                           // bytes of TCP's usual segment, for equal increases
	cubicScale    = 0.4                              // C of RFC 9438, segments/s^3
	cubicDecrease = 0.7                              // beta of RFC 9438
	renoIncrease  = 3 * (1 - cubicDecrease) / (1 + cubicDecrease)
)

// A bufferFill detects flows that fill the buffer of the bottleneck, as those of TCP CUBIC do: the
// queue does not become shorter although this flow has given way. Then it competes as CUBIC does
// (RFC 9438), and only losses reduce the window. When the queue is short again, or after fillTime,
// the delay decides again.
type bufferFill struct {
	competing bool
	since     reliability.Time

	highRounds int     // samples above the target in a row
	before     float64 // window before them

	peak  float64          // window at the last loss
	epoch reliability.Time // of that loss; 0: none yet, the window doubles
	reno  float64          // window of Reno since then
}

// takeSample follows a sample of d.
func (b *bufferFill) takeSample(now reliability.Time, d *delayRule, target int64) {
	if float64(d.low) <= fullShare*float64(target) {
		b.highRounds, b.before = 0, d.window
		if b.competing && d.low < (target+d.base.value())/2 {
			b.stop()
		}
		return
	}
	if b.competing {
		if now-b.since > fillTime {
			b.stop()
		}
		return
	}
	if b.highRounds++; b.highRounds < fullRounds || d.window > (1-fullDecrease)*b.before {
		return
	}
	*b = bufferFill{competing: true, since: now, before: b.before}
	d.window = max(d.window, b.before)
}

// stop lets the delay decide.
func (b *bufferFill) stop() { *b = bufferFill{} }

// onLoss starts an epoch of CUBIC.
func (b *bufferFill) onLoss(now reliability.Time, d *delayRule) {
	if b.competing {
		b.peak, b.epoch, b.reno = d.window, now, cubicDecrease*d.window
	}
}

// growth returns the bytes by which the window grows with acked bytes.
func (b *bufferFill) growth(now reliability.Time, d *delayRule, acked float64) float64 {
	if b.epoch == 0 {
		return acked
	}
	b.reno += renoIncrease * segment * acked / d.window
	t := float64(now-b.epoch+reliability.Time(d.rtt)) / 1e9
	k := math.Cbrt(b.peak / segment * (1 - cubicDecrease) / cubicScale)
	cubic := segment*(cubicScale*math.Pow(t-k, 3)) + b.peak
	want := min(max(cubic, b.reno), 1.5*d.window)
	return max(0, want-d.window) * min(1, acked/d.window)
}
