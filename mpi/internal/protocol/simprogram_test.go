package protocol

import (
	"bytes"
	"errors"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// node is a rank with its program.
type node struct {
	w      *world
	id     int
	core   *Core
	oracle oracle
	dead   bool

	sent    [][]*sent // by destination, in order
	sends   []*send   // not done
	recvs   []*recv
	taken   []*taken // by Probe
	singles []*single
	windows []envelope.Key // window of rank i for this rank
	window  []byte
	results []result
	left    struct{ sends, actives, singles, extras int }
}

// sent is a message, or an active packet.
type sent struct {
	e      match.Envelope
	data   []byte // its content when Send was called
	waits  bool   // the send waits for its receive
	active bool
	kind   envelope.Kind // the kind of its first packet
	at     *recv         // the receive that gets it
}

type send struct {
	r  *Request
	m  *sent
	to int
}

type recv struct {
	r      *Request
	m      *sent // the message it must get
	doomed bool  // it must fail
}

type taken struct {
	m    *Message
	sent *sent
}

// single is a Put or Get.
type single struct {
	r    *Request
	get  bool
	to   int
	off  int
	want []byte
}

// result is memory of a completed request, which nothing may write to.
type result struct{ buf, is []byte }

const slotBytes = 40

// runProgram makes a random call of the program.
func (n *node) runProgram() {
	w := n.w
	switch w.rng.IntN(10) {
	case 0, 1, 2:
		if n.left.sends > 0 && len(n.sends) < 10 {
			n.left.sends--
			context, members := n.comm()
			n.send(n.peerOf(members), context)
		}
	case 3, 4, 5:
		if len(n.recvs) < 8 {
			n.post(n.pattern(), -1)
		}
	case 6:
		if len(n.recvs) > 0 {
			r := n.recvs[w.rng.IntN(len(n.recvs))]
			w.check(n.core.Cancel(r.r) == n.oracle.cancel(r), "%d: cancel of %+v", n.id, r.r.Envelope)
			w.log("%d: cancel %+v: %v", n.id, r.r.Envelope, r.r.Err)
		}
	case 7:
		n.probe()
	case 8:
		if n.left.actives > 0 {
			n.left.actives--
			n.active(w.rng.IntN(len(w.nodes)))
		}
	case 9:
		if n.left.singles > 0 {
			n.left.singles--
			n.oneSided()
		}
	}
}

// comm returns a communicator of the node, and its other ranks.
func (n *node) comm() (context uint32, members []int) {
	if slices.Contains(n.w.some, n.id) && n.w.chance(3) {
		return 1, n.w.some
	}
	return 0, nil
}

func (n *node) peerOf(members []int) int {
	if members != nil {
		return members[n.w.rng.IntN(len(members))]
	}
	return n.w.rng.IntN(len(n.w.nodes))
}

func (n *node) length() int {
	w := n.w
	return w.pick(0, 8, w.rng.IntN(w.eager+1), w.eager, w.eager+1, w.rng.IntN(5*w.eager), 2*w.eager)
}

func (n *node) send(to int, context uint32) {
	w := n.w
	buf := w.fill(n.length())
	r := &Request{Envelope: match.Envelope{Context: context, Source: 99, Tag: int32(w.rng.IntN(3))}, Dest: to, Buf: buf, Sync: w.chance(4)}
	m := &sent{e: match.Envelope{Context: context, Source: int32(n.id), Tag: r.Envelope.Tag}, data: bytes.Clone(buf)}
	m.waits = r.Sync || to != n.id && len(buf) > w.eager || to == n.id && len(buf) > maxSelfCopy
	n.sends = append(n.sends, &send{r, m, to})
	w.log("%d: send %d bytes to %d %+v", n.id, len(buf), to, m.e)
	if to == n.id {
		n.oracle.deliver(m)
	} else {
		n.sent[to] = append(n.sent[to], m)
	}
	n.core.Send(r)
}

// pattern returns a random source, tag and communicator.
func (n *node) pattern() (r *Request) {
	w := n.w
	context, members := n.comm()
	r = &Request{Envelope: match.Envelope{Context: context, Source: match.Any, Tag: int32(w.rng.IntN(4) - 1)}}
	if w.chance(2) {
		r.Envelope.Source = int32(n.peerOf(members))
	} else {
		r.Sources = members
	}
	return r
}

// post starts a receive of n bytes, or of a random number.
func (n *node) post(r *Request, size int) {
	if size < 0 {
		size = n.length() + n.w.pick(0, 0, 20, 1000)
	}
	r.Buf = n.w.fill(size)
	v := &recv{r: r}
	n.recvs = append(n.recvs, v)
	n.oracle.receive(v)
	n.w.log("%d: receive %d bytes %+v", n.id, size, r.Envelope)
	n.core.Receive(r)
}

func (n *node) probe() {
	w := n.w
	r := n.pattern()
	take := len(n.taken) < 3 && w.chance(2)
	want := n.oracle.find(r.Envelope, take)
	got := n.core.Probe(r.Envelope, take)
	w.check((want == nil) == (got == nil), "%d: probe %+v: %v, want %v", n.id, r.Envelope, got, want)
	if want == nil {
		hopeless := n.core.SourceError(r.Envelope, r.Sources)
		w.check((hopeless != nil) == n.oracle.hopeless(&recv{r: r}), "%d: hopeless %+v: %v", n.id, r.Envelope, hopeless)
		return
	}
	w.check(got.Envelope == want.e && got.Length == uint64(len(want.data)), "%d: probe %+v: %+v, want %+v", n.id, r.Envelope, got, want)
	if take {
		n.taken = append(n.taken, &taken{got, want})
	}
}

// receiveTaken receives a message that probe has returned.
func (n *node) receiveTaken() {
	t := n.taken[0]
	n.taken = n.taken[1:]
	r := &Request{Envelope: t.m.Envelope, Buf: n.w.fill(n.length())}
	v := &recv{r: r, m: t.sent}
	t.sent.at = v
	n.recvs = append(n.recvs, v)
	n.core.ReceiveMessage(r, t.m)
}

func (n *node) active(to int) {
	w := n.w
	b := w.fill(w.rng.IntN(w.eager + 2))
	m := &sent{data: bytes.Clone(b), active: true, e: match.Envelope{Source: int32(n.id), Context: 77, Tag: -5}}
	h := envelope.Header{Context: 77, Tag: -5, Length: uint64(len(b)), ID: 1 << 63, Flags: envelope.ByWrite}
	fits := to == n.id || len(b) <= w.eager
	if fits && to != n.id && !n.oracle.lost[to] {
		n.sent[to] = append(n.sent[to], m)
	} else if to == n.id {
		n.oracle.active = append(n.oracle.active, m)
	}
	w.log("%d: active %d bytes to %d", n.id, len(b), to)
	err := n.core.SendActive(to, h, b)
	clear(b) // the memory belongs to the program again
	w.check(n.oracle.lost[to] || (err == nil) == fits, "%d: active packet of %d bytes: %v", n.id, len(b), err)
	if err != nil {
		w.check(errors.Is(err, ErrTooLong) || n.oracle.lost[to] && errors.Is(err, ErrLost), "%d: %v", n.id, err)
	}
}

// handle is the handler of active packets.
func (n *node) handle(from int, h *envelope.Header, payload []byte) error {
	w := n.w
	w.check(len(n.oracle.active) > 0, "%d: an active packet of %d out of turn", n.id, from)
	m := n.oracle.active[0]
	n.oracle.active = n.oracle.active[1:]
	w.check(int(m.e.Source) == from && bytes.Equal(m.data, payload) && h.Context == 77 && h.Tag == -5 && h.ID == 1<<63 &&
		h.Length == uint64(len(payload)) && h.Flags == envelope.ByWrite, "%d: active packet %+v of %d", n.id, *h, from)
	if from != n.id && n.left.extras > 0 && w.chance(2) {
		n.left.extras--
		if w.chance(2) {
			n.active(from)
		} else {
			n.send(from, 0)
		}
	}
	return nil
}

// oneSided writes to a slot of its own in another rank's window, or reads memory that no rank
// writes to.
func (n *node) oneSided() {
	w := n.w
	to := w.rng.IntN(len(w.nodes))
	if to == n.id || n.oracle.lost[to] {
		return
	}
	s := &single{r: &Request{Dest: to}, get: w.chance(2), to: to, off: n.left.singles * slotBytes}
	key := n.windows[to]
	key.Addr += uint64(s.off)
	size := w.rng.IntN(slotBytes + 1)
	n.singles = append(n.singles, s)
	s.r.Buf = w.fill(size)
	if s.get {
		key = n.windows[len(w.nodes)+to]
		s.want = bytes.Clone(w.nodes[to].constant()[:size])
		n.core.Get(s.r, key)
		return
	}
	s.want = bytes.Clone(s.r.Buf)
	s.off += n.id * maxSingles * slotBytes
	n.core.Put(s.r, key)
}

const maxSingles = 4

// constant returns the memory that is read.
func (n *node) constant() []byte { return n.window[len(n.window)-slotBytes:] }
