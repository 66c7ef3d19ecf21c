package flow_test

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/flow"
)

// sizes are the sizes of a pipe.
type sizes struct {
	design flow.Control
	send   int // bytes of the send buffer; of Credit, slots
	first  int // bytes of it used at first; not of Credit
	ring   int // bytes of the ring; of Credit, slots
	size   int // Credit: bytes of a local slot
	peer   int // Credit: bytes of a remote slot
	window int // NIC
	queue  int // messages in the adapter
	most   int // receives
}

// pipe is a sender, a receiver, and between them an adapter that holds a message until there is a
// receive for it. The test chooses the order of events.
type pipe struct {
	t       require.TestingT
	sizes   sizes
	s       flow.Sender
	r       flow.Receiver
	credits *flow.Credits
	mem     []byte // the send buffer
	ring    []byte // at the receiver, target of the sender's adapter
	next    []byte // the next ring
	slots   [][]byte
	free    []int  // slots without a posted receive
	skip    int    // bytes before a slot's data
	posted  int    // receives
	took    uint32 // receives consumed so far

	held     []held // posted, not arrived
	messages int    // posted, not completed
	arrived  []held // not completed
	words    []word // messages of the receiver, not arrived
	model    []byte // written and not read
	counter  byte   // position of the written data
	total    uint64 // bytes written
	cut      uint64 // positions where a message must end
	sent     []byte // reused by write
	buf      []byte // reused by read
	lengths  []int  // bytes of posted messages
}

// held is a message in the adapter, with the content of its memory when it was posted.
type held struct {
	flow.Message
	was  []byte
	kind kind
}

type kind int

const (
	data      kind = iota
	control        // a message without data
	switching      // the notification that later data is in the next ring
)

// word is a report of the receiver, or the offer of another ring.
type word struct {
	bufs  uint16
	ack   uint32
	freed uint64
	due   bool
	ring  []byte
}

func newPipe(t require.TestingT, z sizes) *pipe {
	p := &pipe{t: t, sizes: z, credits: new(flow.Credits)}
	switch z.design {
	case flow.Credit:
		p.skip = 3
		stride, n := z.size+p.skip, z.ring+flow.ReservedCredits
		p.mem = make([]byte, z.send*stride)
		for i := range n {
			p.slots = append(p.slots, make([]byte, z.peer))
			p.free = append(p.free, i)
		}
		p.credits.Start(uint16(n))
		p.s = flow.NewCreditSender(p.mem, stride, p.skip, z.peer, z.queue, p.credits)
		p.r = flow.NewCreditReceiver(n)
	case flow.RDMA:
		p.mem, p.ring = make([]byte, z.send), make([]byte, z.ring)
		p.credits.Start(uint16(z.most))
		p.s = flow.NewRDMASender(p.mem, z.first, z.ring, z.queue, p.credits)
		p.r = flow.NewRDMAReceiver(p.ring, z.most)
	case flow.NIC:
		p.mem, p.ring = make([]byte, z.send), make([]byte, z.ring+z.window)
		p.s = flow.NewNICSender(p.mem, z.first, len(p.ring), z.window, z.queue)
		p.r = flow.NewNICReceiver(p.ring, z.window, z.most)
	}
	p.postReceives()
	return p
}

// write writes n bytes, or the part of them that is accepted.
func (p *pipe) write(n int, cut bool) int {
	p.sent = p.sent[:0]
	for range n {
		p.counter = p.counter*5 + 7 // a sequence of period 256
		p.sent = append(p.sent, p.counter)
	}
	room := p.s.Free()
	k := p.s.Write(p.sent)
	require.Equal(p.t, min(n, room), k)
	for range n - k { // back to the start
		p.counter = (p.counter - 7) * 205 // 5 * 205 = 1 modulo 256
	}
	p.model = append(p.model, p.sent[:k]...)
	p.total += uint64(k)
	if cut && k > 0 {
		p.cut = p.s.EndMessage()
		require.Equal(p.t, p.total, p.cut)
	}
	return k
}

// send writes, and posts the permitted messages.
func (p *pipe) send(n int) int {
	k := p.write(n, false)
	p.post()
	return k
}

// post posts the permitted messages to the adapter.
func (p *pipe) post() {
	for m, ok := p.s.Next(); ok; m, ok = p.s.Next() {
		p.credits.NextSeq()
		require.Positive(p.t, m.Len)
		require.False(p.t, m.Pos < p.cut && p.cut < m.End(), "message %+v extends beyond the cut at %d", m, p.cut)
		p.held = append(p.held, held{Message: m, was: bytes.Clone(p.mem[m.Local:][:m.Len])})
		p.lengths = append(p.lengths, m.Len)
		p.messages++
		require.LessOrEqual(p.t, p.messages, p.sizes.queue)
		if p.sizes.design != flow.NIC {
			require.GreaterOrEqual(p.t, p.credits.Available(), flow.ReservedCredits)
		}
	}
}

// deliver delivers one message, and reports whether it could.
func (p *pipe) deliver() bool {
	if len(p.held) == 0 {
		return false
	}
	h := p.held[0]
	if h.kind == data {
		p.writeToRing(h) // also without a receive
	}
	if p.posted == 0 {
		require.Equal(p.t, flow.NIC, p.sizes.design, "a message without a receive")
		return false
	}
	p.posted--
	p.took++
	switch {
	case h.kind == control:
	case h.kind == switching:
		p.ring, p.next = p.next, nil
		require.True(p.t, p.r.(flow.RingReceiver).SwitchRing())
	case p.sizes.design == flow.Credit:
		slot := p.free[0]
		p.free = p.free[1:]
		copy(p.slots[slot], h.was)
		require.NoError(p.t, p.r.(*flow.CreditReceiver).Deliver(slot, p.slots[slot][:h.Len]))
	default:
		require.NoError(p.t, p.r.(flow.RingReceiver).Deliver(h.Remote, h.Len))
	}
	p.held = p.held[1:]
	p.arrived = append(p.arrived, h)
	p.postReceives()
	return true
}

// writeToRing writes a message to the ring. The adapter does so before it finds a receive.
func (p *pipe) writeToRing(h held) {
	require.Equal(p.t, h.was, p.mem[h.Local:][:h.Len], "the send buffer was used again before its time")
	if p.sizes.design != flow.Credit {
		require.Equal(p.t, h.Len, copy(p.ring[h.Remote:], h.was))
	}
}

// complete completes n arrived messages at the sender.
func (p *pipe) complete(n int) {
	for _, h := range p.arrived[:min(n, len(p.arrived))] {
		if h.kind == data {
			require.Equal(p.t, h.was, p.mem[h.Local:][:h.Len], "the send buffer was used again before its time")
			p.messages--
			if h.Signal {
				p.s.CompleteUpTo(h.End())
			}
		}
		p.arrived = p.arrived[1:]
	}
	p.post()
}

// read reads up to n bytes.
func (p *pipe) read(n int) int {
	before := p.r.Buffered()
	p.buf = append(p.buf[:0], make([]byte, n)...)
	k := p.r.Read(p.buf)
	require.Equal(p.t, min(n, before), k)
	require.Equal(p.t, before-k, p.r.Buffered())
	require.True(p.t, bytes.Equal(p.model[:k], p.buf[:k]), "read %x, written %x", p.buf[:k], p.model[:k])
	p.model = p.model[:copy(p.model, p.model[k:])]
	p.postReceives()
	return k
}

// postReceives posts the missing receives.
func (p *pipe) postReceives() {
	if r, ok := p.r.(*flow.CreditReceiver); ok {
		for slot, ok := r.PopFreed(); ok; slot, ok = r.PopFreed() {
			p.free = append(p.free, slot)
		}
		p.posted = len(p.free)
	}
	if p.sizes.design != flow.Credit {
		p.posted = max(p.posted, p.r.Receives())
	}
	p.check()
}

// report sends a report of the receiver.
func (p *pipe) report() {
	w := word{bufs: uint16(p.posted), ack: p.took}
	if r, ok := p.r.(*flow.RDMAReceiver); ok {
		w.freed, w.due = r.ReportFreed(true)
	}
	p.words = append(p.words, w)
}

// reportIfDue sends a report if one is due.
func (p *pipe) reportIfDue() {
	if r, ok := p.r.(*flow.RDMAReceiver); ok {
		if freed, due := r.ReportFreed(false); due {
			p.words = append(p.words, word{bufs: uint16(p.posted), ack: p.took, freed: freed, due: true})
		}
	}
}

// change offers another ring of n bytes more.
func (p *pipe) change(more int) {
	r, ok := p.r.(flow.RingReceiver)
	if !ok {
		return
	}
	mem := make([]byte, len(p.ring)+more)
	require.False(p.t, len(mem) > 1 && r.ChangeRing(mem[:len(p.ring)-1]), "a shorter ring")
	changing := r.ChangingRing()
	if require.Equal(p.t, !changing, r.ChangeRing(mem)); !changing {
		p.words = append(p.words, word{bufs: uint16(p.posted), ack: p.took, ring: mem})
	}
}

// handleReport handles a report at the sender.
func (p *pipe) handleReport() bool {
	if len(p.words) == 0 {
		return false
	}
	w := p.words[0]
	p.words = p.words[1:]
	require.True(p.t, p.credits.Update(w.bufs, w.ack))
	switch s := p.s.(type) {
	case *flow.RDMASender:
		if w.due {
			require.True(p.t, s.SetFreed(w.freed))
		}
		p.switchTo(w.ring, s.SwitchRing)
	case *flow.NICSender:
		p.switchTo(w.ring, s.SwitchRing)
	}
	p.post()
	return true
}

func (p *pipe) switchTo(ring []byte, with func(int)) {
	if ring == nil {
		return
	}
	with(len(ring))
	p.next = ring
	p.sendEmpty(switching)
}

// sendEmpty sends a message without data.
func (p *pipe) sendEmpty(k kind) {
	p.held = append(p.held, held{kind: k})
	p.credits.NextSeq()
}

// check checks the invariants.
func (p *pipe) check() {
	switch r := p.r.(type) {
	case *flow.NICReceiver:
		free := r.Free()
		require.LessOrEqual(p.t, p.posted, p.sizes.most)
		require.GreaterOrEqual(p.t, free, (p.posted+1)*p.sizes.window, "%d receives, and one message to find out", p.posted)
		if p.posted < p.sizes.most {
			require.Less(p.t, free, (p.posted+2)*p.sizes.window, "a window is free and has no receive")
		}
	case *flow.RDMAReceiver:
		require.Equal(p.t, p.sizes.most, p.posted)
	}
	on := 0
	for _, h := range p.held {
		on += h.Len
	}
	require.Equal(p.t, len(p.model), p.s.Unposted()+on+p.r.Buffered())
	require.GreaterOrEqual(p.t, p.s.Unsent(), p.s.Unposted()+on)
}

// drain delivers and completes until idle: all written data has arrived, and more may be written.
func (p *pipe) drain() {
	p.report()
	for moved := true; moved; {
		moved = false
		for p.deliver() {
			moved = true
		}
		if len(p.arrived) > 0 {
			p.complete(len(p.arrived))
			moved = true
		}
		moved = p.read(1<<16) > 0 || moved
		if moved {
			p.report()
		}
		moved = p.handleReport() || moved
	}
	require.Empty(p.t, p.model, "of %d bytes the last were not delivered", p.total)
	require.Zero(p.t, p.s.Unposted())
	require.Positive(p.t, p.s.Free())
	require.Equal(p.t, 1, p.send(1))
	p.deliver()
	require.Equal(p.t, 1, p.r.Buffered(), "what is written when all is quiet goes out at once")
	require.Equal(p.t, 1, p.read(1))
}
