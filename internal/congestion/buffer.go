package congestion

import (
	"math"

	"github.com/softrnic/softrnic/reliability"
)

// Parameters of a flow beside flows that fill the buffer.
const (
	fullShare     = 1.4                             // of the target: a sample above it is far above
	fullScore     = 40                              // far samples more than samples below the target that show such a flow
	fillTime      = 8_000 * reliability.Millisecond // after which the delay is given another chance
	emptyRounds   = 32                              // samples near the base in a row after which the delay decides again
	segment       = 1448.0                          // bytes of TCP's usual segment, for equal increases
	cubicScale    = 0.4                             // C of RFC 9438, segments/s^3
	cubicDecrease = 0.7                             // beta of RFC 9438
	fillDecrease  = 0.6                             // of a flow here: bursts of TCP lose more than paced packets
	renoIncrease  = 3 * (1 - cubicDecrease) / (1 + cubicDecrease)
)

// A bufferFill detects flows that fill the buffer of the bottleneck, as those of TCP CUBIC do: round
// trips are far above the target although this flow has given way. Then it competes as CUBIC does
// (RFC 9438), and only losses reduce the window. When the queue stays short, or after fillTime, the
// delay decides again. Flows of one device return at the same time, so that they do not take one
// another for such flows.
type bufferFill struct {
	competing bool
	since     reliability.Time
	score     int // of far samples
	empty     int // samples near the base in a row

	window float64          // when the flow last competed
	peak   float64          // window at the last loss
	epoch  reliability.Time // of that loss; 0: none yet, the window doubles
	reno   float64          // window of Reno since then
}

// takeSample follows a sample of d.
func (b *bufferFill) takeSample(now reliability.Time, d *delayRule, target int64) {
	if b.competing {
		if b.empty++; d.low > (target+d.base.value())/2 {
			b.empty = 0
		}
		if b.empty > emptyRounds || now/fillTime != b.since/fillTime {
			*b = bufferFill{window: d.window, score: fullScore / 2}
			d.startDraining(d.window / 4)
		}
		return
	}
	switch {
	case float64(d.low) > fullShare*float64(target):
		b.score++
	case d.low < target:
		b.score = max(b.score-1, 0)
	}
	if b.score >= fullScore {
		*b = bufferFill{competing: true, since: now}
		d.window = max(d.window, b.window)
	}
}

// onLoss starts an epoch of CUBIC.
func (b *bufferFill) onLoss(now reliability.Time, d *delayRule, share float64) {
	if b.competing {
		b.peak, b.epoch, b.reno = d.window, now, share*d.window
	}
}

// growth returns the bytes by which the window grows with acked bytes.
func (b *bufferFill) growth(now reliability.Time, d *delayRule, acked float64) float64 {
	if b.epoch == 0 {
		return acked
	}
	mss := max(segment, d.packet)
	b.reno += renoIncrease * mss * acked / d.window
	t := float64(now-b.epoch+reliability.Time(d.rtt)) / 1e9
	k := math.Cbrt(b.peak / mss * (1 - cubicDecrease) / cubicScale)
	cubic := mss*cubicScale*math.Pow(t-k, 3) + b.peak
	want := min(max(cubic, b.reno), 1.5*d.window)
	return max(0, want-d.window) * min(1, acked/d.window)
}
