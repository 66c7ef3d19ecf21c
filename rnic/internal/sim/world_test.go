package sim_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/rnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
)

// world is one random run: adapters, connections, their programs, and a model of the results.
type world struct {
	seed  uint64
	sim   *sim.Sim
	rand  *rand.Rand
	mem   *slab
	trace *sim.Trace // nil unless recording
	hosts []*host
	pairs []*pair
	loose []*qpProgram // UD
	bytes int          // bytes of messages that may still be sent
	pace  time.Duration
	notes []string // descriptions of the network and the connections
	seen  map[string]uint64
}

// host is an adapter and the program on it.
type host struct {
	world  *world
	name   string
	dev    *sim.Device
	pd     verbs.PD
	cqs    []verbs.CQ
	noise  []byte // constant content of source
	source verbs.MR
	words  *words
	srq    *shared // or nil
	halves map[uint32]*qpProgram

	sent, received uint64 // messages
	killed         bool   // one of its connections was broken
}

// noise is the source of messages. Hosts use different parts of it.
var noise = func() []byte {
	b := make([]byte, 1<<20)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}()

// sourceSize is the size of a host's part of the noise: the longest message and some.
const sourceSize = 80 << 10

func newWorld(seed uint64, mem *slab) *world {
	return &world{seed: seed, sim: sim.New(seed), rand: rand.New(rand.NewPCG(seed, 0x5eed)), mem: mem, seen: make(map[string]uint64)}
}

// fail ends the run with an error.
func (w *world) fail(format string, args ...any) {
	panic(wrong{fmt.Errorf("at %v: "+format, append([]any{w.sim.Now()}, args...)...)})
}

func (w *world) must(err error) {
	if err != nil {
		w.fail("%v", err)
	}
}

func (w *world) chance(percent int) bool { return w.rand.IntN(100) < percent }

// between draws a number from lo to hi.
func (w *world) between(lo, hi int) int { return lo + w.rand.IntN(hi-lo+1) }

// pick draws one of several.
func pick[T any](w *world, list ...T) T { return list[w.rand.IntN(len(list))] }

// length draws the length of a message of at most most bytes: mostly short, and often at the edges
// of packets.
func (w *world) length(mtu, most int) int {
	var n int
	switch w.rand.IntN(10) {
	case 0:
		n = 0
	case 1, 2, 3:
		n = w.between(1, 64)
	case 4, 5:
		n = mtu*w.between(0, 4) + w.between(-1, 1)
	case 6, 7:
		n = w.between(1, 4*mtu)
	case 8:
		n = w.between(1, 16<<10)
	case 9:
		n = w.between(1, 64<<10)
	}
	n = max(0, min(n, most))
	if n > 512 && n > w.bytes {
		n = w.between(0, 512)
	}
	w.bytes -= n
	return n
}

// build creates hosts and connections.
func (w *world) build() {
	w.bytes = 400 << 10
	w.pace = pick(w, 2*time.Microsecond, 20*time.Microsecond, 200*time.Microsecond)
	ipv6 := w.chance(25)
	trouble := w.between(0, 3) // 0: a good network
	for i := range w.between(2, 4) {
		w.host(i, ipv6, trouble)
	}
	for range w.between(1, 5) {
		a := w.rand.IntN(len(w.hosts))
		b := (a + w.between(1, len(w.hosts)-1)) % len(w.hosts)
		if w.chance(5) {
			b = a // an adapter may be its own peer
		}
		w.pair(pick(w, verbs.RC, verbs.RC, verbs.RC, verbs.UC), w.hosts[a], w.hosts[b])
	}
	if w.chance(40) {
		for _, h := range w.hosts {
			if w.chance(70) {
				w.datagrams(h)
			}
		}
	}
}

func (w *world) host(i int, ipv6 bool, trouble int) {
	h := &host{world: w, name: string(rune('a' + i)), halves: make(map[uint32]*qpProgram)}
	o := sim.DeviceOptions{Name: h.name, Impair: w.impairment(trouble), OneByOne: w.chance(30)}
	if ipv6 {
		o.Addr = netip.AddrPortFrom(netip.AddrFrom16([16]byte{0xfd, 15: byte(i + 1)}), 4791)
	} else if w.chance(20) { // on one address with others
		o.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 99}), uint16(4791+i))
	}
	o.Link = memory.Options{
		NoGSO: w.chance(30), NoGRO: w.chance(30),
		Delay: pick(w, time.Microsecond, 10*time.Microsecond, 300*time.Microsecond),
	}
	if trouble > 0 && w.chance(30) {
		o.Link.RecvBuffer = w.between(6<<10, 64<<10)
	}
	if w.chance(50) {
		o.Congestion = []string{"auto", "dcqcn", "delay"}[w.rand.IntN(3)]
	}
	w.notes = append(w.notes, fmt.Sprintf("%s: %q buffer %d congestion %q", h.name, o.Impair, o.Link.RecvBuffer, o.Congestion))
	var err error
	h.dev, err = w.sim.AddDevice(o)
	w.must(err)
	w.hosts = append(w.hosts, h)
	h.dev.App = h.poll
	h.pd, err = h.dev.AllocPD()
	w.must(err)
	for range w.between(1, 2) {
		cq, err := h.dev.CreateCQ(1 << 14)
		w.must(err)
		h.cqs = append(h.cqs, cq)
	}
	off := w.rand.IntN(len(noise) - sourceSize)
	h.noise = noise[off : off+sourceSize : off+sourceSize]
	h.source, err = h.pd.RegMR(h.noise, verbs.AccessRemoteRead|verbs.AccessZeroBased)
	w.must(err)
	h.words = newWords(h)
	if w.chance(30) {
		h.srq = newShared(h)
	}
}

// impairment draws the faults of a link; a higher trouble is worse.
func (w *world) impairment(trouble int) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if trouble > 0 {
		switch most := []int{1, 4, 10}[trouble-1]; w.rand.IntN(4) {
		case 0:
			add("loss gemodel %d%% %d%%", w.between(1, most), w.between(75, 95))
		case 1, 2:
			add("loss %d%%", w.between(0, most))
		}
		if w.chance(50) {
			add("duplicate %d%%", w.between(1, 2*trouble))
		}
		if w.chance(50) {
			add("corrupt %d%%", w.between(1, trouble))
		}
	}
	if w.chance(30 * trouble) {
		mean := w.between(5, 1500)
		add("delay %dus %dus", mean, w.between(1, mean))
		if w.chance(50) {
			add("reorder %d%%", w.between(1, 30))
		}
	}
	if w.chance(10) {
		add("rate %dmbit", w.between(50, 10000))
	}
	text := strings.Join(parts, " ")
	if trouble > 0 && trouble < 3 && w.chance(30) { // combined with other faults at most eight retries may be needed
		text += "; " + pick(w, "drop 15% ACK", "drop 50% NAK", "drop 10% READ_RESPONSE", "duplicate every 3rd FETCH_ADD",
			"drop 15% ATOMIC_ACKNOWLEDGE", "delay 2ms every 7th ACK", "corrupt icrc 10% LAST", "mark ecn every 4th",
			"delay 300us every 3rd READ_REQUEST", "drop 20% RNR", "duplicate every 2nd ACK", "drop in 10%", "delay 1ms in every 5th")
	}
	return text
}

func (w *world) describe() string { return strings.Join(w.notes, "\n") }

// run runs until all requests are complete.
func (w *world) run() {
	for _, p := range w.pairs {
		for _, h := range p.ends {
			h.start()
		}
	}
	for _, h := range w.loose {
		h.start()
	}
	if !w.sim.Run(nil) {
		w.fail("the run does not end: %s", w.unfinished())
	}
}

// unfinished describes the waiting requests.
func (w *world) unfinished() string {
	var b strings.Builder
	for _, p := range w.pairs {
		for _, h := range p.ends {
			fmt.Fprintf(&b, "%v: %d posted, %d messages to come, %d receives, budget %d; ", h, len(h.posted), len(h.inbox), len(h.receives), h.budget)
		}
	}
	return b.String()
}

// check compares the end of the run with the model.
func (w *world) check() {
	for _, p := range w.pairs {
		for _, h := range p.ends {
			h.check()
		}
	}
	for _, h := range w.loose {
		h.check()
	}
	for _, h := range w.hosts {
		h.words.check()
		if h.srq != nil {
			h.srq.check()
		}
		h.checkCounters()
	}
}

// close destroys everything; after a successful run object by object, and then none may remain.
func (w *world) close(good bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("closing: %v", r)
		}
	}()
	for _, h := range w.hosts {
		if good {
			h.dismantle()
		}
	}
	for _, h := range w.hosts {
		w.must(h.dev.Close())
	}
	return nil
}

// dismantle destroys the objects of a host one by one.
func (h *host) dismantle() {
	w := h.world
	for _, q := range h.halves {
		w.must(q.qp.Close())
		q.dismantle()
	}
	if h.srq != nil {
		w.must(h.srq.queue.Close())
		w.must(h.srq.arena.mr.Close())
	}
	for _, mr := range []verbs.MR{h.source, h.words.mr} {
		w.must(mr.Close())
	}
	for _, cq := range h.cqs {
		w.must(cq.Close())
	}
	w.must(h.pd.Close())
	s := h.dev.Stats()
	if left := s.QPs + s.CQs + s.MRs + s.MWs + s.PDs + s.SRQs + s.AHs; left != 0 {
		w.fail("%s has objects left: %+v", h.name, s)
	}
}

// arena is registered memory with a model of its content.
type arena struct {
	world *world
	mr    verbs.MR
	want  []byte
	next  int // first free byte
}

// targetAccess is the access of peers to a target.
const targetAccess = verbs.AccessRemote | verbs.AccessFlushGlobal | verbs.AccessMWBind

func newArena(h *host, size int, access verbs.AccessFlags) *arena {
	a := &arena{world: h.world, want: h.world.mem.alloc(size)}
	a.register(h, h.world.mem.alloc(size), access)
	return a
}

func (a *arena) register(h *host, buf []byte, access verbs.AccessFlags) {
	mr, err := h.pd.RegMR(buf, access|verbs.AccessLocalWrite|verbs.AccessZeroBased)
	a.world.must(err)
	a.mr = mr
}

// alloc allocates n bytes, with a gap before them; false if there is no space.
func (a *arena) alloc(n int) (off int, ok bool) {
	off = a.next + a.world.rand.IntN(17)
	if off+n > len(a.want) {
		return 0, false
	}
	a.next = off + n
	return off, true
}

// clear zeroes all of it for reuse. No request may use it.
func (a *arena) clear() {
	clear(a.want[:a.next])
	clear(a.mr.Bytes()[:a.next])
	a.next = 0
}

// at returns the memory as it is.
func (a *arena) at(off, n int) []byte { return a.mr.Bytes()[off : off+n] }

// check compares all of it with the model.
func (a *arena) check(what string) {
	if got := a.mr.Bytes(); !bytes.Equal(got, a.want) {
		for i := range got {
			if got[i] != a.want[i] {
				a.world.fail("%s: byte %d is %#x and not %#x", what, i, got[i], a.want[i])
			}
		}
	}
}
