package congestion

import (
	"container/heap"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
)

// A sharedBuffer is a bottleneck with a drop-tail buffer in virtual time, through which senders share
// a path whose acknowledgements take base nanoseconds.
type sharedBuffer struct {
	rate   float64 // bytes a nanosecond
	limit  int     // bytes
	base   reliability.Time
	queued int
	freeAt reliability.Time
	now    reliability.Time
	events pathEvents
	serial int
}

type pathEvent struct {
	at     reliability.Time
	serial int
	run    func()
}

type pathEvents []pathEvent

func (e pathEvents) Len() int { return len(e) }
func (e pathEvents) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].serial < e[j].serial
}
func (e pathEvents) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *pathEvents) Push(x any)   { *e = append(*e, x.(pathEvent)) }
func (e *pathEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (b *sharedBuffer) at(t reliability.Time, run func()) {
	b.serial++
	heap.Push(&b.events, pathEvent{t, b.serial, run})
}

// send puts a packet into the buffer, and calls arrived when its acknowledgement is back, or lost
// when that of the next packet would be.
func (b *sharedBuffer) send(bytes int, arrived, lost func()) {
	if b.queued+bytes > b.limit {
		b.at(b.freeAt+b.base, lost)
		return
	}
	b.queued += bytes
	b.freeAt = max(b.freeAt, b.now) + reliability.Time(float64(bytes)/b.rate)
	left := b.freeAt
	b.at(left, func() { b.queued -= bytes })
	b.at(left+b.base, arrived)
}

func (b *sharedBuffer) runUntil(end reliability.Time) {
	for len(b.events) > 0 && b.events[0].at <= end {
		e := heap.Pop(&b.events).(pathEvent)
		b.now = e.at
		e.run()
	}
	b.now = end
}

// A controlledFlow is a sender with a Controller.
type controlledFlow struct {
	path     *sharedBuffer
	c        Controller
	packet   int
	inFlight int
	bytes    int
	wakeup   reliability.Time
}

func (f *controlledFlow) trySend() {
	for f.inFlight == 0 || f.inFlight+f.packet <= f.c.Window() {
		now := f.path.now
		if at := f.c.NextSend(now); at > now {
			if f.wakeup <= now || at < f.wakeup {
				f.wakeup = at
				f.path.at(at, f.trySend)
			}
			return
		}
		f.c.OnSent(now, f.packet)
		f.inFlight += f.packet
		f.path.send(f.packet, func() {
			before := f.inFlight
			f.inFlight -= f.packet
			f.bytes += f.packet
			f.c.OnAck(f.path.now, Ack{Bytes: f.packet, InFlight: before, RTT: int64(f.path.now - now)})
			f.trySend()
		}, func() {
			f.inFlight -= f.packet
			f.c.OnLoss(f.path.now)
			f.trySend()
		})
	}
}

// A cubicFlow is a sender with TCP CUBIC (RFC 9438), which repairs all losses without timeouts.
type cubicFlow struct {
	path      *sharedBuffer
	mss       int
	window    float64 // segments
	threshold float64
	peak      float64
	epoch     reliability.Time
	reno      float64
	srtt      float64
	inFlight  int
	bytes     int
	sent      int // segments
	recovery  int // losses of segments before it have been answered
	lost      int // segments in that recovery
	most      int // of them in any recovery
}

func (f *cubicFlow) trySend() {
	for float64(f.inFlight/f.mss+1) <= max(f.window, 1) {
		sentAt, serial := f.path.now, f.sent
		f.sent++
		f.inFlight += f.mss
		f.path.send(f.mss, func() { f.onAck(float64(f.path.now - sentAt)) }, func() { f.onLoss(serial) })
	}
}

func (f *cubicFlow) onAck(rtt float64) {
	f.inFlight -= f.mss
	f.bytes += f.mss
	if f.srtt == 0 {
		f.srtt = rtt
	}
	f.srtt += (rtt - f.srtt) / 8
	if f.window < f.threshold {
		f.window++
	} else {
		t := (float64(f.path.now-f.epoch) + f.srtt) / 1e9
		k := math.Cbrt(f.peak * 0.3 / 0.4)
		f.reno += 3 * 0.3 / 1.7 / f.window
		target := max(0.4*math.Pow(t-k, 3)+f.peak, f.reno)
		f.window += max(0, min(target, 1.5*f.window)-f.window) / f.window
	}
	f.trySend()
}

func (f *cubicFlow) onLoss(serial int) {
	f.inFlight -= f.mss
	f.lost++
	f.most = max(f.most, f.lost)
	if serial >= f.recovery {
		f.recovery, f.lost = f.sent, 1
		f.peak, f.epoch = f.window, f.path.now
		f.window = max(2, f.window*0.7)
		f.threshold, f.reno = f.window, f.window
	}
	f.trySend()
}

// TestBesideCubic checks that a flow beside one of CUBIC that fills the buffer gets its share within
// some seconds and leaves the other one its own, also until its first loss.
func TestBesideCubic(t *testing.T) {
	const seconds, second = 20, 1000 * reliability.Millisecond
	for _, mtu := range []struct{ packet, segment int }{{1024 + 256, 1448}, {4096 + 256, 8948}} {
		path := &sharedBuffer{rate: 200e6 / 8 / 1e9, limit: 250_000, base: 100 * reliability.Microsecond}
		ours := &controlledFlow{path: path, c: New(Auto, Config{Packet: mtu.packet, MaxWindow: 1 << 20}), packet: mtu.packet}
		cubic := &cubicFlow{path: path, mss: mtu.segment, window: 10, threshold: math.Inf(1)}
		path.at(0, cubic.trySend)
		path.at(0, ours.trySend)
		for s := range seconds {
			cubic.most = 0
			before, beforeCubic := ours.bytes, cubic.bytes
			path.runUntil(reliability.Time(s+1) * second)
			a, b := float64(ours.bytes-before)*8/1e6, float64(cubic.bytes-beforeCubic)*8/1e6
			t.Logf("second %d: %.0f and %.0f Mbit/s, at most %d segments lost in a round trip", s, a, b, cubic.most)
			require.Greater(t, b, 60.0, "CUBIC is not starved, Mbit/s")
			if s > 0 { // CUBIC has ended its slow start
				require.LessOrEqual(t, cubic.most, 16, "segments of CUBIC lost in a round trip")
			}
			if s >= 3 {
				require.Greater(t, a, b/3)
			}
		}
	}
}
