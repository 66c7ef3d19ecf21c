package sim_test

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/verbs"
)

// words is a host's memory for atomics: words to which queue pairs of many hosts add, each in its
// own 16 bits, and one that all of them swap.
type words struct {
	host  *host
	mr    verbs.MR
	lanes []*lane

	first  uint64              // initial value of the swapped word
	last   uint64              // value that a requester last saw in it
	swaps  map[uint64]uint64   // executed swaps: old and new value
	maybe  map[uint64][]uint64 // swaps that may have been executed
	failed []uint64            // values seen by failed swaps
	values uint64              // number of new values so far
}

// swapAt is the offset of the swapped word; the lanes follow it.
const swapAt = 0

const wordsSize = 8 * 16

// lane is a requester's part of a word.
type lane struct {
	at    int  // offset of the word
	shift uint // of the lane
	sum   uint64
	lost  []uint64 // additions that may not have been executed, since the last restart
}

// operation is a posted atomic.
type operation struct {
	lane          *lane // FETCH-ADD
	add, before   uint64
	compare, swap uint64
}

func newWords(h *host) *words {
	w := &words{host: h, first: 1, last: 1, swaps: make(map[uint64]uint64), maybe: make(map[uint64][]uint64)}
	var err error
	w.mr, err = h.pd.RegMR(h.world.mem.alloc(wordsSize), verbs.AccessLocalWrite|verbs.AccessRemoteAtomic|verbs.AccessZeroBased)
	h.world.must(err)
	binary.NativeEndian.PutUint64(w.mr.Bytes()[swapAt:], w.first)
	return w
}

// newLane allocates a lane for a requester.
func (w *words) newLane() *lane {
	n := len(w.lanes)
	l := &lane{at: 8 * (1 + n/4), shift: 16 * uint(n%4)}
	w.lanes = append(w.lanes, l)
	return l
}

func (l *lane) of(word uint64) uint64 { return word >> l.shift & 0xffff }

func wordOf(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

// composeAtomic draws a FETCH-ADD or COMPARE-SWAP at the peer.
func (h *qpProgram) composeAtomic(wr *verbs.SendWR, r *request) bool {
	w, words := h.world, h.peer.host.words
	off, ok := h.alloc(h.results, 8)
	if !ok {
		return false
	}
	r.result = span{off, 8}
	wr.SGList = []verbs.SGE{h.results.mr.SGE(off, 8)}
	wr.RKey = words.mr.RKey()
	r.atomic = &operation{}
	if wr.Opcode == verbs.WRAtomicFetchAdd {
		l := h.peer.lane // created at the peer's host for this program
		add := uint64(w.between(1, 5))
		*r.atomic = operation{lane: l, add: add, before: l.sum}
		wr.RemoteAddr, wr.CompareAdd = uint64(l.at), add<<l.shift
		l.sum += add
		return true
	}
	words.values++
	*r.atomic = operation{compare: words.last, swap: words.values<<8 | 0xca}
	wr.RemoteAddr, wr.CompareAdd, wr.Swap = swapAt, r.atomic.compare, r.atomic.swap
	return true
}

// answered checks the original value returned by a FETCH-ADD or COMPARE-SWAP.
func (w *words) answered(h *qpProgram, r *request, orig uint64) {
	o := r.atomic
	if o.lane != nil {
		if got := o.lane.of(orig); got != o.before&0xffff {
			w.host.world.fail("%v: FETCH-ADD %d found %d in its lane and not %d: an addition happened twice, or not at all", h, r.id, got, o.before)
		}
		return
	}
	if orig != o.compare {
		w.failed = append(w.failed, orig)
		w.last = orig
		return
	}
	if to, twice := w.swaps[orig]; twice {
		w.host.world.fail("%v: COMPARE-SWAP of %#x succeeded for %#x and %#x", h, orig, to, o.swap)
	}
	w.swaps[orig] = o.swap
	w.last = o.swap
}

// unknown records an atomic that may or may not have been executed.
func (w *words) unknown(o *operation) {
	if o.lane != nil {
		o.lane.lost = append(o.lane.lost, o.before)
		return
	}
	w.maybe[o.compare] = append(w.maybe[o.compare], o.swap)
}

// restart reads the value of a lane whose requester was disconnected: some of the last additions
// may not have been executed.
func (w *words) restart(l *lane) {
	now := l.of(wordOf(w.mr.Bytes()[l.at:]))
	ok := now == l.sum&0xffff
	for _, before := range l.lost {
		ok = ok || now == before&0xffff
	}
	if !ok {
		w.host.world.fail("lane of %s at %d: it is %d, neither %d nor any of %d", w.host.name, l.at, now, l.sum, l.lost)
	}
	l.sum, l.lost = now, nil
}

// check compares all words with the executed operations.
func (w *words) check() {
	world := w.host.world
	for _, l := range w.lanes {
		if len(l.lost) > 0 {
			w.restart(l)
		} else if now := l.of(wordOf(w.mr.Bytes()[l.at:])); now != l.sum&0xffff {
			world.fail("lane of %s at %d is %d, the additions make %d", w.host.name, l.at, now, l.sum)
		}
	}
	seen := map[uint64]bool{}
	if !w.findChain(w.first, wordOf(w.mr.Bytes()[swapAt:]), len(w.swaps), seen) {
		world.fail("%s: no order of the swaps %v, and perhaps %v, leads from %#x to %#x",
			w.host.name, w.swaps, w.maybe, w.first, wordOf(w.mr.Bytes()[swapAt:]))
	}
	for _, v := range w.failed {
		if !seen[v] {
			world.fail("%s: a COMPARE-SWAP found %#x, which was never there", w.host.name, v)
		}
	}
}

// findChain finds a chain from one value to the end that contains all executed swaps; left are the
// swaps to come.
func (w *words) findChain(from, end uint64, left int, seen map[uint64]bool) bool {
	seen[from] = true
	if to, ok := w.swaps[from]; ok {
		return w.findChain(to, end, left-1, seen)
	}
	if left == 0 && from == end {
		return true
	}
	for _, to := range w.maybe[from] {
		if w.findChain(to, end, left, seen) {
			return true
		}
	}
	return false
}
