package verbsbench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/verbs"
)

const (
	warmup     = 200 // round trips before those that count
	pingSlots  = 64  // messages leave from so many places in turn
	pingSignal = 16  // every so many requests on a queue pair one is signaled
	maxInline  = 220 // bytes that go inline; perftest's default for writes
)

// ping is one end of a ping-pong. Its memory is slots of one message each,
// which end at a multiple of 8: what comes is placed in slot 0, what leaves
// does so from the others in turn. A message is the pattern, but for its last
// byte, which is the last of the message's number.
type ping struct {
	*rig
	o         PingOptions
	kind      opKind
	opcode    verbs.WROpcode
	pieces    int // of a message: one, but for long UD messages
	unit      int // bytes of a piece, but for the last
	inline    bool
	wrs       []verbs.SendWR // the pieces
	sges      []verbs.SGE
	n         int // messages so far, the one under way included
	completed int // of our requests, up to the last signaled one that completed
	come      int // pieces that came
	in        *receives
	got       []byte // where the last message is
	await     func() error
}

func openPing(ctx context.Context, e *end, o PingOptions) (runner, error) {
	p, err := newPing(e, o)
	if err != nil {
		return nil, err
	}
	limits := verbs.QPCap{MaxSendWR: max(pingSlots, 4*p.pieces), MaxSendSGE: 1, MaxInlineData: maxInline}
	var ready func(*rig) error
	if p.await == nil { // messages complete receives
		p.await = p.awaitReceive
		limits.MaxRecvWR, limits.MaxRecvSGE = limits.MaxSendWR, 1
		ready = func(r *rig) (err error) {
			p.in, err = newReceives(r, limits.MaxRecvWR, limits.MaxRecvWR, p.unit)
			return err
		}
	}
	p.rig, err = openRig(ctx, e, rigOptions{
		kind: p.kind, qps: p.o.QPs, limits: limits, memory: (1 + pingSlots) * p.stride(), ready: ready,
	})
	if err != nil {
		return nil, err
	}
	p.prepare()
	return p, nil
}

// newPing checks the options and decides how to send and to wait.
func newPing(e *end, o PingOptions) (*ping, error) {
	kind, err := o.Op.kind()
	if err != nil {
		return nil, err
	}
	o.QPs = max(1, o.QPs)
	p := &ping{o: o, kind: kind, opcode: kind.opcode, pieces: 1, unit: o.Size, inline: o.Size <= maxInline && !kind.fetches()}
	switch {
	case o.Size < 1 || o.Op == RCAtomic && o.Size != atomicSize:
		return nil, fmt.Errorf("verbsbench: %s cannot move %d bytes", o.Op, o.Size)
	case o.QPs > 1 && (o.Op != RCWrite || o.Event || !p.inline):
		return nil, fmt.Errorf("verbsbench: queue pairs take turns only with polled %s of up to %d bytes", RCWrite, maxInline)
	case kind.transport == verbs.UD && o.Size > maxUDPing:
		return nil, fmt.Errorf("verbsbench: a UD message of %d bytes would overrun a socket; %d at most", o.Size, maxUDPing)
	}
	switch {
	case kind.fetches():
		p.await = p.awaitFetch
	case kind.writes() && !o.Event:
		p.await = p.awaitWrite
	case kind.writes():
		p.opcode = kind.withImm
	case kind.transport == verbs.UD && o.Size > e.path.Bytes():
		p.opcode, p.unit = kind.withImm, e.path.Bytes()
		p.pieces = (o.Size + p.unit - 1) / p.unit
	}
	return p, nil
}

const (
	atomicSize = 8
	maxUDPing  = 128 << 10 // of one burst into the default socket buffer
)

func (p *ping) stride() int        { return (p.o.Size + 7) &^ 7 }
func (p *ping) place(slot int) int { return (slot+1)*p.stride() - p.o.Size }

func (p *ping) slot(slot int) []byte {
	off := p.place(slot)
	return p.data()[off : off+p.o.Size]
}

// prepare fills the slots to send from and the work requests.
func (p *ping) prepare() {
	p.got = p.slot(0)
	p.wrs, p.sges = make([]verbs.SendWR, p.pieces), make([]verbs.SGE, p.pieces)
	for i := range pingSlots {
		if p.o.Op != RCAtomic {
			copy(p.slot(1+i), p.pattern(p.o.Size))
		}
	}
	for i := range p.wrs {
		switch off, n := p.piece(i); {
		case p.kind.fetches() && p.o.Op == RCRead:
			p.wrs[i] = p.request(p.sges[i:], p.place(0)+off, p.place(1)+off, n)
		default:
			p.wrs[i] = p.request(p.sges[i:], p.place(1)+off, p.place(0)+off, n)
		}
		p.wrs[i].Opcode, p.wrs[i].Imm, p.wrs[i].CompareAdd = p.opcode, uint32(i), 1
	}
	p.handOver()
}

// piece is the offset and the length of a piece of a message.
func (p *ping) piece(i int) (off, n int) {
	off = i * p.unit
	return off, min(p.unit, p.o.Size-off)
}

func (p *ping) run(ctx context.Context, r request) (reply, error) {
	half, err := p.play(ctx, r.Iters)
	if err != nil {
		return reply{}, err
	}
	if err := proc.Barrier(ctx, p.Worker); err != nil {
		return reply{}, err
	}
	defer p.handOver()
	return reply{Latency: half}, p.check()
}

func (p *ping) play(ctx context.Context, iters int) (*measure.Latency, error) {
	half := measure.NewLatency()
	switch {
	case p.kind.fetches() && p.Rank == 1: // our adapter answers
		p.n += warmup + iters
		return half, nil
	case p.Rank == 1:
		for range warmup + iters {
			p.n++
			if err := p.await(); err != nil {
				return nil, err
			}
			if err := p.send(); err != nil {
				return nil, err
			}
		}
		return half, nil
	}
	ways := time.Duration(2)
	if p.kind.fetches() {
		ways = 1
	}
	last := time.Now()
	for i := range warmup + iters {
		p.n++
		if err := p.send(); err != nil {
			return nil, err
		}
		if err := p.await(); err != nil {
			return nil, err
		}
		now := time.Now()
		if i >= warmup {
			half.Record(now.Sub(last) / ways)
		}
		last = now
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return half, nil
}

// send posts message n.
func (p *ping) send() error {
	if !p.kind.fetches() {
		if err := p.load(); err != nil {
			return err
		}
	}
	last := &p.wrs[p.pieces-1]
	last.WRID = uint64(p.n)
	if p.kind.fetches() || p.n/p.o.QPs%pingSignal == pingSignal-1 {
		last.Flags |= verbs.SendSignaled
	} else {
		last.Flags &^= verbs.SendSignaled
	}
	_, err := p.qps[p.n%p.o.QPs].PostSend(p.wrs)
	return err
}

// load puts message n into its slot, and the slot into the requests.
func (p *ping) load() error {
	if err := p.reclaim(); err != nil {
		return err
	}
	slot := p.slot(1 + p.n%pingSlots)
	slot[p.o.Size-1] = byte(p.n)
	if p.inline {
		p.wrs[0].SGList, p.wrs[0].InlineData, p.wrs[0].Flags = nil, slot, verbs.SendInline
		return nil
	}
	for i := range p.wrs {
		off, n := p.piece(i)
		p.sges[i] = p.mr.SGE(dataOffset+p.place(1+p.n%pingSlots)+off, n)
	}
	return nil
}

// reclaim waits until what left from the slot of message n before is complete.
// What went inline is not waited for, but its completions are taken out of the
// queue where nothing else does.
func (p *ping) reclaim() error {
	if p.inline {
		if p.in == nil && p.n%pingSlots == 0 {
			_, err := p.poll()
			return err
		}
		return nil
	}
	var w watch
	for p.completed < p.n-pingSlots {
		if n, err := p.poll(); err != nil || n == 0 && w.expired() {
			return p.lost(err)
		}
	}
	return nil
}

// awaitWrite polls memory until message n is there.
func (p *ping) awaitWrite() error {
	last := dataOffset + p.stride() - 8
	var w watch
	for {
		var word [8]byte
		binary.NativeEndian.PutUint64(word[:], p.mr.LoadUint64(last))
		if word[7] == byte(p.n) {
			return nil
		}
		if p.dev.Progress() == 0 && w.expired() {
			return p.lost(nil)
		}
	}
}

// awaitReceive takes completions until all of message n has come.
func (p *ping) awaitReceive() error {
	var w watch
	for p.come < p.n*p.pieces {
		if n, err := p.take(); err != nil || n == 0 && w.expired() {
			return p.lost(err)
		}
	}
	if last := p.got[p.o.Size-1]; last != byte(p.n) {
		return fmt.Errorf("wrong answer: message %d of %s ends with 0x%02x", p.n, p.o.Op, last)
	}
	return nil
}

// awaitFetch takes completions until request n has completed.
func (p *ping) awaitFetch() error {
	var w watch
	for p.completed < p.n {
		if n, err := p.take(); err != nil || n == 0 && w.expired() {
			return p.lost(err)
		}
	}
	if p.o.Op != RCAtomic {
		return nil
	}
	if old := binary.NativeEndian.Uint64(p.slot(1)); old != uint64(p.n-1) {
		return fmt.Errorf("wrong answer: fetch-and-add number %d found %d", p.n, old)
	}
	return nil
}

// take is poll, blocking if the subject is about events. Nothing cancels it,
// as nothing cancels the baseline: the parent ends a process that hangs.
func (p *ping) take() (int, error) {
	if !p.o.Event {
		return p.poll()
	}
	n, err := p.cq.PollWait(context.Background(), p.wcs[:])
	return n, p.handle(n, err)
}

func (p *ping) poll() (int, error) {
	n, err := p.cq.Poll(p.wcs[:])
	return n, p.handle(n, err)
}

func (p *ping) handle(n int, err error) error {
	for i := range p.wcs[:n] {
		wc := &p.wcs[i]
		switch {
		case wc.Err() != nil:
			return wc.Err()
		case wc.Opcode.IsRecv():
			if err := p.receive(wc); err != nil {
				return err
			}
		default:
			p.completed = max(p.completed, int(wc.WRID))
		}
	}
	return err
}

// receive takes a piece.
func (p *ping) receive(wc *verbs.WC) error {
	p.come++
	switch payload := p.in.payload(wc); {
	case p.pieces > 1:
		off, n := p.piece(int(wc.Imm) % p.pieces)
		copy(p.got[off:off+n], payload)
	case !p.kind.writes():
		p.got = payload
	}
	return p.in.giveBack(wc)
}

// check compares the last message of a round with what was sent.
func (p *ping) check() error {
	switch {
	case p.o.Op == RCAtomic && p.Rank == 1:
		if sum := p.mr.LoadUint64(dataOffset); sum != uint64(p.n) {
			return fmt.Errorf("wrong answer: %d additions made %d", p.n, sum)
		}
		return nil
	case p.o.Op == RCAtomic || p.kind.fetches() && p.Rank == 1:
		return nil
	}
	end := p.o.Size
	if !p.kind.fetches() {
		end-- // the number
	}
	return p.pattern(p.o.Size).Check(p.got[:end], false)
}

// lost explains why a wait has ended.
func (p *ping) lost(err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("verbsbench: message %d of %s did not come within %v", p.n, p.o.Op, patience)
}

func (p *ping) close() error {
	err := p.rig.close()
	if p.in != nil {
		err = errors.Join(err, p.in.close())
	}
	return err
}
