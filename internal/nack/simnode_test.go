package nack

import (
	"bytes"

	"github.com/softrnic/softrnic/reliability"
)

// node is an end with its program and its adapter.
type node struct {
	w     *world
	id    int
	o     Options
	epoch uint32
	first uint32
	core  *Core
	busy  int            // interval of the program's messages in microseconds
	left  int            // maximum number of messages
	waits map[int][]byte // messages that did not fit in the window, by peer
	got   map[stream]int // messages

	// The adapter.
	depth   int              // slots that it has at a time
	slow    Time             // maximum time to send a packet
	has     map[int32][]byte // slots with their content at the time of posting
	leaving Time             // time at which the last packet is sent
	ringing Time             // of the timer
	steps   int
}

// start starts an incarnation.
func (v *node) start() {
	w := v.w
	v.o.Memory = nil
	v.core = New(v.o)
	v.core.first = v.first
	v.waits, v.got, v.has = map[int][]byte{}, map[stream]int{}, map[int32][]byte{}
	v.ringing = 0
	life := v.epoch
	for i, peer := range w.nodes {
		if i == v.id {
			continue
		}
		at := Peer{MTU: w.pick(0, minMTU, 150, 1<<20)}
		switch w.rng.IntN(3) {
		case 0:
			at.Epoch = peer.epoch
		case 1:
			at.Epoch = w.epoch // the incarnation may have ended
		}
		w.schedule(w.random(2*w.travel), func() {
			if v.epoch == life {
				v.core.OpenPeer(w.now, i, at)
				v.goOn()
			}
		})
	}
	w.schedule(w.random(w.travel), func() { v.program(life) })
}

// restart starts another incarnation: unsent messages are lost.
func (v *node) restart() {
	v.w.log("%d restarts", v.id)
	v.w.add(&v.core.Stats)
	v.epoch += uint32(1 + v.w.rng.IntN(5))
	if v.epoch == 0 {
		v.epoch = 1
	}
	v.o.Epoch = v.epoch
	v.start()
}

// program sends random messages to random peers.
func (v *node) program(life uint32) {
	w := v.w
	if v.epoch != life || w.now > w.until || v.left <= 0 {
		return
	}
	for range w.pick(1, 1, 5, 50) {
		to := w.rng.IntN(len(w.nodes))
		v.left--
		if to != v.id && v.waits[to] == nil {
			v.send(to, v.message())
		}
	}
	v.goOn()
	w.schedule(w.random(Time(v.busy)*reliability.Microsecond), func() { v.program(life) })
}

// message returns a new message.
func (v *node) message() []byte {
	most := min(v.core.o.MaxMessage, min(v.o.Slots, maxPackets)*(minMTU-DataSize)) // the MTU of all peers is the same
	b := make([]byte, v.w.rng.IntN(1+v.w.pick(0, 20, most)))
	for i := range b {
		b[i] = byte(v.w.rng.Uint32())
	}
	return b
}

func (v *node) send(to int, b []byte) {
	w := v.w
	s := stream{v.id, to, v.epoch, v.core.getPeer(to).epoch}
	head := w.rng.IntN(len(b) + 1)
	sent := bytes.Clone(b)
	err := v.core.Send(w.now, to, b[:head], b[head:])
	switch err {
	case nil:
		w.logs[s] = append(w.logs[s], sent)
		clear(b) // Send has copied it
	case ErrWouldBlock:
		v.waits[to] = sent
	default:
		w.check(false, "%d sends %d bytes to %d: %v", v.id, len(b), to, err)
	}
}

// handlePacket handles a packet, whose memory is reused afterwards.
func (v *node) handlePacket(from int, packet []byte) {
	w := v.w
	b := bytes.Clone(packet)
	d := v.core.HandlePacket(w.now, from, b, func(m []byte) {
		s := stream{from, v.id, v.core.getPeer(from).epoch, v.epoch}
		n := v.got[s]
		w.check(n < len(w.logs[s]), "%d got message %d of %d, which has sent %d", v.id, n, from, len(w.logs[s]))
		w.check(bytes.Equal(m, w.logs[s][n]), "%d: message %d of %d is another", v.id, n, from)
		v.got[s] = n + 1
		clear(m)
		if w.chance(4) { // a reply
			to := w.rng.IntN(len(w.nodes))
			if to != v.id && v.waits[to] == nil && w.now < w.until {
				v.send(to, v.message())
			}
		}
	})
	if d != DropNone {
		w.log("%d dropped that of %d: %v", v.id, from, d)
		w.check(d != DropMalformed && d != DropTooLong && d != DropInconsistent && d != DropPeerClosed, "%d dropped a good packet of %d: %v", v.id, from, d)
	}
	clear(b)
	if !w.chance(3) { // or several packets before the next transmission
		v.goOn()
	} else {
		w.schedule(w.random(w.travel), v.goOn)
	}
}

// goOn handles events, sends packets and arms the timer.
func (v *node) goOn() {
	w := v.w
	for e, ok := v.core.NextEvent(); ok; e, ok = v.core.NextEvent() {
		w.log("%d: %d is %v", v.id, e.Peer, e.Kind)
		w.check(e.Kind <= Restarted || e.Kind == TimedOut && v.core.getPeer(e.Peer).epoch != w.nodes[e.Peer].epoch, "%d: %d is %v", v.id, e.Peer, e.Kind)
		if b := v.waits[e.Peer]; b != nil && e.Kind == Writable {
			delete(v.waits, e.Peer)
			v.send(e.Peer, b)
		}
	}
	v.drain()
	if v.steps++; v.steps%16 == 0 {
		v.core.invariants(w.check)
	}
	if at := v.core.Deadline(); at != 0 && (v.ringing == 0 || at < v.ringing) {
		core := v.core
		v.ringing = at
		w.schedule(max(0, at-w.now), func() {
			if v.core == core && v.ringing == at {
				v.ringing = 0
				core.Advance(w.now)
				v.goOn()
			}
		})
	}
}

// drain posts packets to the adapter, which reads slots later.
func (v *node) drain() {
	w, core := v.w, v.core
	out := w.out[:]
	for len(v.has) < v.depth {
		n := core.Drain(w.now, out[:w.rng.IntN(v.depth-len(v.has))+1])
		if n == 0 {
			return
		}
		for i := range out[:n] {
			p := &out[i]
			b, to, slot := bytes.Clone(p.Bytes), p.Peer, int32(p.Slot)
			w.check(len(b) <= v.o.MTU, "a packet of %d bytes", len(b))
			mem, inline := p.Bytes, slot < 0 || w.chance(2)
			if inline {
				core.ReleaseSlot(p.Slot)
			} else {
				w.check(v.has[slot] == nil, "slot %d is the adapter's twice", slot)
				v.has[slot] = b
			}
			v.leaving = max(v.leaving, w.now+w.random(v.slow))
			w.schedule(v.leaving-w.now, func() { w.transfer(v.id, to, b) })
			if inline {
				continue
			}
			w.schedule(v.leaving-w.now+w.random(5*w.travel), func() {
				w.check(bytes.Equal(mem, b), "slot %d has changed while the adapter had it", slot)
				if v.core == core {
					delete(v.has, slot)
					core.ReleaseSlot(int(slot))
					v.goOn()
				}
			})
		}
	}
}

// checkEnd checks the final state: every message between live incarnations has arrived, and no
// state remains.
func (v *node) checkEnd() {
	w, c := v.w, v.core
	for _, from := range w.nodes {
		s := stream{from.id, v.id, from.epoch, v.epoch}
		w.check(v.got[s] == len(w.logs[s]), "%d got %d of the %d messages of %d", v.id, v.got[s], len(w.logs[s]), from.id)
	}
	w.check(len(v.waits) == 0, "%d: %d messages wait still", v.id, len(v.waits))
	w.check(c.idle() == nil, "%d: %v", v.id, c.idle())
	w.check(len(v.has) == 0, "the adapter has %d slots", len(v.has))
	w.add(&c.Stats)
}

// add adds counters to those seen.
func (w *world) add(s *Stats) {
	t := &w.seen
	t.Sent += s.Sent
	t.Delivered += s.Delivered
	t.Packets += s.Packets
	t.Retransmitted += s.Retransmitted
	t.Probes += s.Probes
	t.Acks += s.Acks
	t.Nacks += s.Nacks
	t.NacksReceived += s.NacksReceived
	t.OutOfOrder += s.OutOfOrder
	t.Restarts += s.Restarts
	for i, n := range s.Dropped {
		t.Dropped[i] += n
	}
}
