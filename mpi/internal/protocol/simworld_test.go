package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/softrnic/softrnic/internal/counters"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// world is a set of ranks and their connections. Events are random.
type world struct {
	rng       *rand.Rand
	trace     func(string)
	nodes     []*node
	pairs     [][]*pair // by from and to
	exposures []*exposure
	windows   int   // of exposures: permanent ones
	some      []int // the ranks of communicator 1
	eager     int
	faults    int // one registration or transfer in so many fails
	firstSeq  uint32
	step      int
	lossAt    int // step
	haste     int // of ten steps, the number of calls of the programs
	seen      Stats
}

// failure is the value with which a world panics when a check fails.
type failure struct{ error }

func (w *world) check(ok bool, format string, args ...any) {
	if !ok {
		panic(failure{fmt.Errorf("step %d: "+format, append([]any{w.step}, args...)...)})
	}
}

func (w *world) log(format string, args ...any) {
	if w.trace != nil {
		w.trace(fmt.Sprintf("%5d  "+format, append([]any{w.step}, args...)...))
	}
}

// chance returns true with probability 1/n.
func (w *world) chance(n int) bool     { return w.rng.IntN(n) == 0 }
func (w *world) pick(list ...int) int  { return list[w.rng.IntN(len(list))] }
func (w *world) fault() bool           { return w.faults > 0 && w.chance(w.faults) }
func (w *world) pair(a, b *node) *pair { return w.pairs[a.id][b.id] }

func (w *world) fill(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.rng.Uint32())
	}
	return b
}

func newWorld(seed uint64, trace func(string)) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x3b1)), trace: trace}
	n := 2 + w.rng.IntN(4)
	w.eager = envelope.KeySize + w.rng.IntN(40)
	w.faults = w.pick(0, 0, 3, 10)
	w.firstSeq = uint32(w.pick(0, -5, 1<<31-3))
	w.lossAt = w.pick(-1, w.rng.IntN(steps))
	w.haste = w.pick(1, 4, 9)
	w.some = w.rng.Perm(n)[:1+w.rng.IntN(n)]
	lazy := w.pick(3, 30, 3000)
	for i := range n {
		v := &node{w: w, id: i, core: New(i, n), oracle: newOracle(n), sent: make([][]*sent, n)}
		v.window = w.fill((n*maxSingles + 1) * slotBytes)
		v.core.Attach(link{v})
		v.core.Handler = v.handle
		v.core.throttleWatermark = w.pick(300, 2000, 1<<20)
		v.left.sends, v.left.actives, v.left.singles, v.left.extras = w.rng.IntN(30), w.rng.IntN(8), w.rng.IntN(maxSingles+1), 3
		for j := range n {
			v.core.peers.Get(j).sendSeq, v.core.peers.Get(j).recvSeq = w.firstSeq, w.firstSeq
			v.core.peers.Get(j).throttleSent, v.core.peers.Get(j).throttleReceived = w.firstSeq, w.firstSeq
		}
		w.nodes = append(w.nodes, v)
	}
	for _, a := range w.nodes {
		w.pairs = append(w.pairs, nil)
		for _, b := range w.nodes {
			p := &pair{w: w, from: a, to: b, limits: Limits{w.eager, Scheme(w.rng.IntN(3))}, ways: make([][]packet, 1+w.rng.IntN(3)),
				room: 1 + w.rng.IntN(w.pick(1, 4, lazy)), slots: 1 + w.rng.IntN(3)}
			w.pairs[a.id] = append(w.pairs[a.id], p)
		}
	}
	for _, a := range w.nodes { // windows that the others write to and read from
		a.windows = make([]envelope.Key, 2*n)
		for _, b := range w.nodes {
			mine := b.window[a.id*maxSingles*slotBytes:][:maxSingles*slotBytes]
			a.windows[b.id] = w.show(b, a, mine, true)
			a.windows[n+b.id] = w.show(b, a, b.constant(), false)
		}
	}
	w.windows = len(w.exposures)
	return w
}

// show exposes a window permanently.
func (w *world) show(owner, whom *node, b []byte, write bool) envelope.Key {
	w.exposures = append(w.exposures, &exposure{owner, whom.id, b, write, true})
	i := len(w.exposures)
	return envelope.Key{Addr: uint64(i) << 32, RKey: uint32(i), Rail: 7}
}

// runSeed runs a world to its end.
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
	w.run()
	return w.seen, nil
}

// steps is the number of steps in which programs make calls.
const steps = 700

func (w *world) run() {
	for ; ; w.step++ {
		w.check(w.step < 100_000, "there is no end to it")
		if w.step == w.lossAt {
			w.failSomething()
		}
		acted := false
		if w.rng.IntN(10) < w.haste && w.step < steps {
			n := w.nodes[w.rng.IntN(len(w.nodes))]
			if !n.dead {
				acted = true
				n.runProgram()
			}
		}
		if !acted && !w.runEvent() && w.step >= steps && !w.drain() {
			break
		}
		w.observe()
	}
	w.finish()
}

// runEvent executes one event other than a call, and reports whether there was one.
func (w *world) runEvent() bool {
	var list []func()
	for _, from := range w.pairs {
		for _, p := range from {
			if p.from == p.to {
				continue
			}
			for i := range p.ways {
				if p.arrived(i) {
					list = append(list, func() { p.deliver(i) })
				}
			}
			if p.from.dead {
				continue
			}
			for _, m := range p.moves {
				if p.canMove(m) {
					list = append(list, func() { p.progress(m) })
				}
			}
			if p.hasRoom() {
				list = append(list, func() { p.starved = false; p.from.core.Resume(p.to.id) })
			}
			if p.broken && !p.cut && (len(list) == 0 || w.chance(20)) {
				list = append(list, func() { w.reportLost(p) })
			}
		}
	}
	if len(list) == 0 {
		return false
	}
	list[w.rng.IntN(len(list))]()
	return true
}

// failSomething fails a rank, or the connection of two.
func (w *world) failSomething() {
	a, b := w.nodes[w.rng.IntN(len(w.nodes))], w.nodes[w.rng.IntN(len(w.nodes))]
	w.log("disaster: %d %d", a.id, b.id)
	if a == b || w.chance(2) {
		a.dead = true
		for _, n := range w.nodes {
			w.pair(n, a).broken = true
		}
		return
	}
	w.pair(a, b).broken, w.pair(b, a).broken = true, true
}

// reportLost notifies a rank that another is lost.
func (w *world) reportLost(p *pair) {
	w.log("%d: lost %d", p.from.id, p.to.id)
	p.cut = true
	w.pair(p.to, p.from).broken = true
	p.from.oracle.failRank(p.to.id)
	p.from.core.FailPeer(p.to.id, errGone)
}

// drain receives a remaining message, and reports whether there was one.
func (w *world) drain() bool {
	for _, n := range w.nodes {
		switch {
		case n.dead:
		case len(n.taken) > 0:
			n.receiveTaken()
			return true
		case len(n.oracle.unexpected) > 0:
			m := n.oracle.unexpected[0]
			n.post(&Request{Envelope: m.e}, len(m.data))
			return true
		}
	}
	return false
}

// observe checks all requests.
func (w *world) observe() {
	for _, n := range w.nodes {
		if n.dead {
			continue
		}
		n.sends = slices.DeleteFunc(n.sends, func(s *send) bool {
			w.mustEnd(n, s.r, s.to, "send")
			if s.r.Done {
				n.sendDone(s)
			}
			return s.r.Done
		})
		n.recvs = slices.DeleteFunc(n.recvs, func(r *recv) bool {
			switch {
			case r.doomed:
				w.check(r.r.Done, "%d: a receive that waits for a lost rank: %+v", n.id, r.r.Envelope)
			case r.m != nil && r.m.kind == envelope.Eager:
				w.check(r.r.Done, "%d: a receive whose message is there: %+v", n.id, r.r.Envelope)
			case r.m != nil:
				w.mustEnd(n, r.r, int(r.m.e.Source), "receive")
			}
			if r.r.Done {
				n.recvDone(r)
			}
			return r.r.Done
		})
		n.singles = slices.DeleteFunc(n.singles, func(s *single) bool {
			w.mustEnd(n, s.r, s.to, "one-sided communication")
			if s.r.Done {
				n.singleDone(s)
			}
			return s.r.Done
		})
	}
}

// mustEnd checks that a request to a lost rank is done, unless the net still uses its memory.
func (w *world) mustEnd(n *node, r *Request, with int, what string) {
	w.check(r.Done || !n.oracle.lost[with] || w.isMoving(n, r), "%d: a %s that waits for %d, which is lost", n.id, what, with)
}

// isMoving reports whether the net uses the memory of a request.
func (w *world) isMoving(n *node, r *Request) bool {
	return slices.ContainsFunc(w.pairs[n.id], func(p *pair) bool {
		return slices.ContainsFunc(p.moves, func(m *move) bool { return len(r.Buf) > 0 && &m.b[0] == &r.Buf[0] })
	})
}

// checkReturned checks that the net does not use the memory of a completed request, and keeps it to
// detect later writes.
func (n *node) checkReturned(r *Request) {
	w := n.w
	w.check(!w.isMoving(n, r), "%d: memory that is being moved was handed back", n.id)
	for _, e := range w.exposures {
		w.check(!e.live || e.owner != n || len(r.Buf) == 0 || &e.b[0] != &r.Buf[0], "%d: memory that rank %d can reach was handed back", n.id, e.whom)
	}
	n.results = append(n.results, result{r.Buf, bytes.Clone(r.Buf)})
}

func (n *node) sendDone(s *send) {
	w := n.w
	w.log("%d: sent to %d: %v", n.id, s.to, s.r.Err)
	w.check(bytes.Equal(s.r.Buf, s.m.data), "%d: a send changed its memory", n.id)
	if s.r.Err == nil {
		w.check(!s.m.waits || s.m.at != nil, "%d: a send to %d is done before its receive is there", n.id, s.to)
	} else {
		w.check(errors.Is(s.r.Err, ErrLost) && n.oracle.lost[s.to], "%d: a send to %d: %v", n.id, s.to, s.r.Err)
	}
	clear(s.r.Buf)
	n.checkReturned(s.r)
}

func (n *node) recvDone(v *recv) {
	w, r := n.w, v.r
	w.log("%d: received %+v: %v", n.id, r.Received, r.Err)
	n.checkReturned(r)
	switch {
	case errors.Is(r.Err, ErrCanceled):
		w.check(v.m == nil && !v.doomed, "%d: canceled, and it had a message", n.id)
	case errors.Is(r.Err, ErrLost):
		w.check(v.doomed || v.m != nil && n.oracle.lost[v.m.e.Source], "%d: a receive %+v: %v", n.id, r.Envelope, r.Err)
		w.check(r.Bytes == 0, "%d: %d bytes of a lost message", n.id, r.Bytes)
	default:
		w.check(v.m != nil, "%d: a receive %+v got %+v, which is not for it: %v", n.id, r.Envelope, r.Received, r.Err)
		m := v.m
		w.check(errors.Is(r.Err, ErrTruncated) == (len(m.data) > len(r.Buf)) && (r.Err == nil || errors.Is(r.Err, ErrTruncated)),
			"%d: %d bytes in %d: %v", n.id, len(m.data), len(r.Buf), r.Err)
		w.check(r.Received == m.e && r.Bytes == min(len(m.data), len(r.Buf)), "%d: received %+v, %d bytes, want %+v, %d", n.id, r.Received, r.Bytes, m.e, len(m.data))
		w.check(bytes.Equal(r.Buf[:r.Bytes], m.data[:r.Bytes]), "%d: not the message %+v", n.id, m.e)
	}
}

func (n *node) singleDone(s *single) {
	w := n.w
	n.checkReturned(s.r)
	switch {
	case s.r.Err != nil:
		w.check(errors.Is(s.r.Err, errFault) || errors.Is(s.r.Err, ErrLost) && n.oracle.lost[s.to], "%d: %v", n.id, s.r.Err)
	case s.get:
		w.check(bytes.Equal(s.want, s.r.Buf), "%d: not what rank %d has", n.id, s.to)
	default:
		w.check(bytes.Equal(s.want, w.nodes[s.to].window[s.off:][:len(s.want)]), "%d: rank %d has not what was put there", n.id, s.to)
	}
}

// finish checks that no request is left.
func (w *world) finish() {
	for _, n := range w.nodes {
		if n.dead {
			continue
		}
		for _, r := range n.recvs {
			w.check(n.oracle.cancel(r) && n.core.Cancel(r.r), "%d: a receive %+v that has its message is not done", n.id, r.r.Envelope)
		}
		w.check(len(n.sends) == 0 && len(n.singles) == 0, "%d: %d sends, %d one-sided are not done", n.id, len(n.sends), len(n.singles))
		receives, messages, underway := n.core.Pending()
		w.check(receives+messages+underway == 0, "%d: %d receives, %d messages, %d requests are left", n.id, receives, messages, underway)
		for _, r := range n.results {
			w.check(bytes.Equal(r.buf, r.is), "%d: memory was written to after it was handed back", n.id)
		}
		for i, p := range n.core.peers.All() {
			w.check(p.unexpectedBytes == 0 && !p.throttled && p.earlyBytes == 0 && len(p.early) == 0 && p.queue.Len() == 0, "%d: something is left of %d: %+v", n.id, i, *p)
			other := w.nodes[i].core.peers.Get(n.id)
			w.check(p.err != nil || other.err != nil || w.nodes[i].dead || !other.announceAll, "%d: rank %d is throttled for ever", n.id, i)
		}
		counters.Add(&w.seen, n.core.Stats)
	}
	for i, e := range w.exposures {
		w.check(!e.live || i < w.windows || e.owner.dead, "memory of %d can be reached by %d still", e.owner.id, e.whom)
	}
}
