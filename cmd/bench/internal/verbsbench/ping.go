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
	warmup             = 200 // round trips that are not measured
	pingSlots          = 64  // send slots, used round-robin
	pingSignalInterval = 16  // every n-th request of a queue pair is signaled
	maxInline          = 220 // maximum inline bytes; perftest's default for writes
)

// A pingSide is one side of a ping-pong. Its memory has slots of one message each, which end at
// a multiple of 8. Slot 0 receives, the other slots send round-robin. A message is the pattern,
// except for its last byte, which is the low byte of the message number.
type pingSide struct {
	*rig
	o            PingOptions
	kind         opKind
	opcode       verbs.WROpcode
	fragments    int // fragments of a message; 1 except for long UD messages
	fragmentSize int // bytes of a fragment, except for the last
	inline       bool
	wrs          []verbs.SendWR // one for each fragment
	sges         []verbs.SGE
	n            int // number of the current message
	completed    int // number of the last completed request
	received     int // received fragments
	recvs        *recvPool
	lastMessage  []byte // the last received message
	waitMessage  func() error
}

func openPing(ctx context.Context, e *side, o PingOptions) (runner, error) {
	p, err := newPing(e, o)
	if err != nil {
		return nil, err
	}
	limits := verbs.QPCap{MaxSendWR: max(pingSlots, 4*p.fragments), MaxSendSGE: 1, MaxInlineData: maxInline}
	var ready func(*rig) error
	if p.waitMessage == nil { // messages complete receives
		p.waitMessage = p.awaitReceive
		limits.MaxRecvWR, limits.MaxRecvSGE = limits.MaxSendWR, 1
		ready = func(r *rig) (err error) {
			p.recvs, err = newRecvPool(r, limits.MaxRecvWR, limits.MaxRecvWR, p.fragmentSize)
			return err
		}
	}
	p.rig, err = openRig(ctx, e, rigOptions{
		kind: p.kind, qps: p.o.QPs, limits: limits, memory: (1 + pingSlots) * p.slotStride(), ready: ready,
	})
	if err != nil {
		return nil, err
	}
	p.initSlots()
	return p, nil
}

// newPing checks the options and selects how to send and to wait.
func newPing(e *side, o PingOptions) (*pingSide, error) {
	kind, err := o.Op.lookupKind()
	if err != nil {
		return nil, err
	}
	o.QPs = max(1, o.QPs)
	p := &pingSide{o: o, kind: kind, opcode: kind.opcode, fragments: 1, fragmentSize: o.Size, inline: o.Size <= maxInline && !kind.isFetch()}
	switch {
	case o.Size < 1 || o.Op == RCAtomic && o.Size != atomicSize:
		return nil, fmt.Errorf("verbsbench: %s of %d bytes: invalid size", o.Op, o.Size)
	case o.QPs > 1 && (o.Op != RCWrite || o.Event || !p.inline):
		return nil, fmt.Errorf("verbsbench: several queue pairs need polled %s of at most %d bytes", RCWrite, maxInline)
	case kind.transport == verbs.UD && o.Size > maxUDPing:
		return nil, fmt.Errorf("verbsbench: UD message of %d bytes: want at most %d, the size of a socket buffer", o.Size, maxUDPing)
	}
	switch {
	case kind.isFetch():
		p.waitMessage = p.awaitFetch
	case kind.isWrite() && !o.Event:
		p.waitMessage = p.awaitWrite
	case kind.isWrite():
		p.opcode = kind.withImm
	case kind.transport == verbs.UD && o.Size > e.path.Bytes():
		p.opcode, p.fragmentSize = kind.withImm, e.path.Bytes()
		p.fragments = (o.Size + p.fragmentSize - 1) / p.fragmentSize
	}
	return p, nil
}

const (
	atomicSize = 8
	maxUDPing  = 128 << 10 // one burst that fits into the default socket buffer
)

func (p *pingSide) slotStride() int         { return (p.o.Size + 7) &^ 7 }
func (p *pingSide) slotOffset(slot int) int { return (slot+1)*p.slotStride() - p.o.Size }

func (p *pingSide) slotBytes(slot int) []byte {
	off := p.slotOffset(slot)
	return p.payloadBytes()[off : off+p.o.Size]
}

// initSlots fills the send slots and the work requests.
func (p *pingSide) initSlots() {
	p.lastMessage = p.slotBytes(0)
	p.wrs, p.sges = make([]verbs.SendWR, p.fragments), make([]verbs.SGE, p.fragments)
	for i := range pingSlots {
		if p.o.Op != RCAtomic {
			copy(p.slotBytes(1+i), p.payloadPattern(p.o.Size))
		}
	}
	for i := range p.wrs {
		switch off, n := p.fragmentRange(i); {
		case p.kind.isFetch() && p.o.Op == RCRead:
			p.wrs[i] = p.newSendWR(p.sges[i:], p.slotOffset(0)+off, p.slotOffset(1)+off, n)
		default:
			p.wrs[i] = p.newSendWR(p.sges[i:], p.slotOffset(1)+off, p.slotOffset(0)+off, n)
		}
		p.wrs[i].Opcode, p.wrs[i].Imm, p.wrs[i].CompareAdd = p.opcode, uint32(i), 1
	}
	p.syncMemory()
}

// fragmentRange returns offset and length of fragment i of a message.
func (p *pingSide) fragmentRange(i int) (off, n int) {
	off = i * p.fragmentSize
	return off, min(p.fragmentSize, p.o.Size-off)
}

func (p *pingSide) runRound(ctx context.Context, r request) (reply, error) {
	half, err := p.exchangeMessages(ctx, r.Iters)
	if err != nil {
		return reply{}, err
	}
	if err := proc.Barrier(ctx, p.Worker); err != nil {
		return reply{}, err
	}
	defer p.syncMemory()
	return reply{Latency: half}, p.verifyLast()
}

func (p *pingSide) exchangeMessages(ctx context.Context, iters int) (*measure.Latency, error) {
	half := measure.NewLatency()
	switch {
	case p.kind.isFetch() && p.Rank == 1: // served by the adapter
		p.n += warmup + iters
		return half, nil
	case p.Rank == 1:
		for range warmup + iters {
			p.n++
			if err := p.waitMessage(); err != nil {
				return nil, err
			}
			if err := p.postMessage(); err != nil {
				return nil, err
			}
		}
		return half, nil
	}
	ways := time.Duration(2)
	if p.kind.isFetch() {
		ways = 1
	}
	last := time.Now()
	for i := range warmup + iters {
		p.n++
		if err := p.postMessage(); err != nil {
			return nil, err
		}
		if err := p.waitMessage(); err != nil {
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

// postMessage posts message n.
func (p *pingSide) postMessage() error {
	if !p.kind.isFetch() {
		if err := p.loadSlot(); err != nil {
			return err
		}
	}
	last := &p.wrs[p.fragments-1]
	last.WRID = uint64(p.n)
	if p.kind.isFetch() || p.n/p.o.QPs%pingSignalInterval == pingSignalInterval-1 {
		last.Flags |= verbs.SendSignaled
	} else {
		last.Flags &^= verbs.SendSignaled
	}
	_, err := p.qps[p.n%p.o.QPs].PostSend(p.wrs)
	return err
}

// loadSlot copies message n into its slot and sets the slot in the requests.
func (p *pingSide) loadSlot() error {
	if err := p.reclaimSlot(); err != nil {
		return err
	}
	slot := p.slotBytes(1 + p.n%pingSlots)
	slot[p.o.Size-1] = byte(p.n)
	if p.inline {
		p.wrs[0].SGList, p.wrs[0].InlineData, p.wrs[0].Flags = nil, slot, verbs.SendInline
		return nil
	}
	for i := range p.wrs {
		off, n := p.fragmentRange(i)
		p.sges[i] = p.mr.SGE(dataOffset+p.slotOffset(1+p.n%pingSlots)+off, n)
	}
	return nil
}

// reclaimSlot waits until the previous message in the slot of message n has been sent. Inline
// messages need no wait, but their completions are polled here if nothing else polls them.
func (p *pingSide) reclaimSlot() error {
	if p.inline {
		if p.recvs == nil && p.n%pingSlots == 0 {
			_, err := p.pollOnce()
			return err
		}
		return nil
	}
	var w pollDeadline
	for p.completed < p.n-pingSlots {
		if n, err := p.pollOnce(); err != nil || n == 0 && w.hasExpired() {
			return p.timeoutError(err)
		}
	}
	return nil
}

// awaitWrite polls memory until message n has arrived.
func (p *pingSide) awaitWrite() error {
	last := dataOffset + p.slotStride() - 8
	var w pollDeadline
	for {
		var word [8]byte
		binary.NativeEndian.PutUint64(word[:], p.mr.LoadUint64(last))
		if word[7] == byte(p.n) {
			return nil
		}
		if p.dev.Progress() == 0 && w.hasExpired() {
			return p.timeoutError(nil)
		}
	}
}

// awaitReceive waits for completions until message n has arrived completely.
func (p *pingSide) awaitReceive() error {
	var w pollDeadline
	for p.received < p.n*p.fragments {
		if n, err := p.pollOrWait(); err != nil || n == 0 && w.hasExpired() {
			return p.timeoutError(err)
		}
	}
	if last := p.lastMessage[p.o.Size-1]; last != byte(p.n) {
		return fmt.Errorf("wrong data: message %d of %s: last byte 0x%02x", p.n, p.o.Op, last)
	}
	return nil
}

// awaitFetch waits for completions until request n has completed.
func (p *pingSide) awaitFetch() error {
	var w pollDeadline
	for p.completed < p.n {
		if n, err := p.pollOrWait(); err != nil || n == 0 && w.hasExpired() {
			return p.timeoutError(err)
		}
	}
	if p.o.Op != RCAtomic {
		return nil
	}
	if old := binary.NativeEndian.Uint64(p.slotBytes(1)); old != uint64(p.n-1) {
		return fmt.Errorf("wrong data: fetch-and-add %d returned %d", p.n, old)
	}
	return nil
}

// pollOrWait polls once, or blocks until a completion if the ping-pong is event-driven. The
// wait cannot be cancelled, like that of the baseline: the parent kills a process that hangs.
func (p *pingSide) pollOrWait() (int, error) {
	if !p.o.Event {
		return p.pollOnce()
	}
	n, err := p.cq.PollWait(context.Background(), p.wcs[:])
	return n, p.handleCompletions(n, err)
}

func (p *pingSide) pollOnce() (int, error) {
	n, err := p.cq.Poll(p.wcs[:])
	return n, p.handleCompletions(n, err)
}

func (p *pingSide) handleCompletions(n int, err error) error {
	for i := range p.wcs[:n] {
		wc := &p.wcs[i]
		switch {
		case wc.Err() != nil:
			return wc.Err()
		case wc.Opcode.IsRecv():
			if err := p.acceptFragment(wc); err != nil {
				return err
			}
		default:
			p.completed = max(p.completed, int(wc.WRID))
		}
	}
	return err
}

// acceptFragment stores a received fragment.
func (p *pingSide) acceptFragment(wc *verbs.WC) error {
	p.received++
	switch payload := p.recvs.payloadOf(wc); {
	case p.fragments > 1:
		off, n := p.fragmentRange(int(wc.Imm) % p.fragments)
		copy(p.lastMessage[off:off+n], payload)
	case !p.kind.isWrite():
		p.lastMessage = payload
	}
	return p.recvs.repostRecv(wc)
}

// verifyLast compares the last message of a round with the sent one.
func (p *pingSide) verifyLast() error {
	switch {
	case p.o.Op == RCAtomic && p.Rank == 1:
		if sum := p.mr.LoadUint64(dataOffset); sum != uint64(p.n) {
			return fmt.Errorf("wrong data: %d additions resulted in %d", p.n, sum)
		}
		return nil
	case p.o.Op == RCAtomic || p.kind.isFetch() && p.Rank == 1:
		return nil
	}
	end := p.o.Size
	if !p.kind.isFetch() {
		end-- // the last byte is the message number
	}
	return p.payloadPattern(p.o.Size).Check(p.lastMessage[:end], false)
}

// timeoutError returns err, or a timeout error if err is nil.
func (p *pingSide) timeoutError(err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("verbsbench: message %d of %s: not received within %v", p.n, p.o.Op, pollTimeout)
}

func (p *pingSide) close() error {
	err := p.rig.close()
	if p.recvs != nil {
		err = errors.Join(err, p.recvs.close())
	}
	return err
}
