package nack

import (
	"container/heap"
	"fmt"
	"math/rand/v2"

	"github.com/softrnic/softrnic/reliability"
)

// world is a set of ends and a network that loses, duplicates and reorders packets at random. Its
// clock advances from event to event.
type world struct {
	rng   *rand.Rand
	trace func(string)
	now   Time
	queue happenings
	count int
	nodes []*node
	logs  map[stream][][]byte // messages accepted by Send, by stream
	seen  Stats               // counters of ended incarnations

	loss, double, late int // one packet in so many; 0: none
	travel             Time
	until              Time // programs send until then
	epoch              uint32
	out                [64]Packet
}

// stream identifies the messages of one incarnation of an end to one of another.
type stream struct {
	from, to       int
	life, peerLife uint32
}

// happening is a future event.
type happening struct {
	at    Time
	order int
	f     func()
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// failure is the panic value of a world that finds an error.
type failure struct{ error }

func (w *world) check(ok bool, format string, args ...any) {
	if !ok {
		panic(failure{fmt.Errorf("%.3f ms: "+format, append([]any{float64(w.now) / 1e6}, args...)...)})
	}
}

func (w *world) log(format string, args ...any) {
	if w.trace != nil {
		w.trace(fmt.Sprintf("%10.3f  "+format, append([]any{float64(w.now) / 1e6}, args...)...))
	}
}

// chance reports true once in n times, never if n is 0.
func (w *world) chance(n int) bool    { return n > 0 && w.rng.IntN(n) == 0 }
func (w *world) pick(list ...int) int { return list[w.rng.IntN(len(list))] }
func (w *world) schedule(d Time, f func()) {
	w.count++
	heap.Push(&w.queue, happening{w.now + d, w.count, f})
}

// random returns a time up to d.
func (w *world) random(d Time) Time { return 1 + Time(w.rng.Int64N(int64(d))) }

func newWorld(seed uint64, trace func(string)) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x4ac)), trace: trace, now: 1, logs: map[stream][][]byte{}}
	w.loss, w.double, w.late = w.pick(0, 3, 10, 30, 200), w.pick(0, 0, 3, 20, 100), w.pick(0, 0, 3, 20, 100)
	w.travel = Time(w.pick(1, 10, 300)) * reliability.Microsecond
	w.until = Time(w.pick(1, 20, 400)) * reliability.Millisecond
	n := w.pick(2, 2, 3, 5)
	o := Options{Peers: n, MTU: w.pick(minMTU, 200, 1000), Slots: w.pick(5, 40, 300), ReorderBytes: w.pick(1, 700, 1<<20), Short: w.pick(0, 64, 256),
		AckDelay: int64(w.pick(20, 1000)) * reliability.Microsecond, GiveUp: 20_000 * reliability.Millisecond, MaxMessage: w.pick(0, 300, 5000)}
	first := uint32(w.pick(0, 0, -7, 1<<31-9))
	w.epoch = uint32(w.pick(1, 1000, -1, 1<<31-1))
	for i := range n {
		v := &node{w: w, id: i, o: o, first: first, busy: w.pick(1, 100, 5000), depth: w.pick(1, 8, 64), left: w.pick(5, 20, 100), slow: w.travel * Time(w.pick(1, 1, 10))}
		v.o.Self, v.o.Epoch, v.epoch = uint32(i), w.epoch, w.epoch
		w.nodes = append(w.nodes, v)
	}
	for _, v := range w.nodes {
		v.start()
	}
	if w.chance(3) {
		for range 1 + w.rng.IntN(3) {
			v := w.nodes[w.rng.IntN(n)]
			w.schedule(w.random(w.until), v.restart)
		}
	}
	return w
}

// runSeed runs a world until it is idle.
func runSeed(seed uint64, trace func(string)) (seen Stats, err error) {
	w := newWorld(seed, trace)
	defer func() {
		if v := recover(); v != nil {
			f, ok := v.(failure)
			if !ok {
				panic(v)
			}
			err = f
		}
	}()
	for steps := 0; len(w.queue) > 0; steps++ {
		h := heap.Pop(&w.queue).(happening)
		w.now = h.at
		h.f()
		w.check(steps < 200_000, "it does not end")
	}
	for _, v := range w.nodes {
		v.checkEnd()
	}
	return w.seen, nil
}

// transfer transfers a packet through the network.
func (w *world) transfer(from, to int, b []byte) {
	if w.chance(w.loss) {
		w.log("%d > %d  %s  LOST", from, to, describe(b))
		return
	}
	w.log("%d > %d  %s", from, to, describe(b))
	for again := true; again; again = w.chance(w.double) {
		d := w.travel
		if w.chance(w.late) {
			d += w.random(10 * w.travel)
		}
		w.schedule(d, func() { w.nodes[to].handlePacket(from, b) })
	}
}

func describe(b []byte) string {
	var h Header
	if !h.Parse(b) {
		return "?"
	}
	return fmt.Sprintf("%v %d epoch %d to %d ack %d have %x order %d echo %d flags %d length %d", h.Kind, h.Seq, h.Epoch, h.To, h.Ack, h.Sack, h.TxNum, h.TxEcho, h.Flags, h.Length)
}
