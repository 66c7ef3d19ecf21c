package sim_test

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// kill breaks a connection in one of several ways.
func (p *pair) kill() {
	w := p.world
	h := pick(w, p.ends[0], p.ends[1])
	p.lives--
	p.killed = true
	p.ends[0].host.killed, p.ends[1].host.killed = true, true
	what := w.rand.IntN(4)
	if w.trace != nil {
		w.trace.Note(h.host.dev, []string{"destroys its queue pair", "goes to ERR", "deregisters the target", "deregisters the receives"}[what])
	}
	switch {
	case what == 0:
		h.destroy()
		if s := h.srq(); s != nil { // it has the receive of the incomplete message back
			s.markDirty(slices.Collect(maps.Values(s.posted)))
		}
	case what == 2:
		if h.target.mr.Close() != nil { // a window is bound to it
			h.enterError()
		}
	case what == 3 && h.landing != nil:
		w.must(h.landing.arena.mr.Close())
	default:
		h.enterError()
	}
	h.host.dev.ScheduleAt(w.sim.Now()+time.Duration(w.rand.Int64N(int64(pick(w, 1, 10, 1000)*int(time.Millisecond)))), p.rebuild)
}

// enterError modifies the queue pair to ERR.
func (h *qpProgram) enterError() {
	h.world.must(h.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState))
}

// destroy destroys the queue pair with all posted requests.
func (h *qpProgram) destroy() {
	h.host.poll()
	delete(h.host.halves, h.qp.Num())
	h.world.must(h.qp.Close())
	for _, r := range h.posted {
		h.flushed(r)
	}
	h.posted, h.receives = nil, nil
	h.gone = true
}

// rebuild destroys a broken connection and creates it again.
func (p *pair) rebuild() {
	w := p.world
	p.down = true
	for _, h := range p.ends {
		if !h.gone {
			h.enterError()
			h.host.poll()
			for len(h.posted) > 0 && !h.posted[0].signaled && !h.signalAll {
				h.succeeded(h.posted[0]) // otherwise it had a completion
				h.posted = h.posted[1:]
			}
			if len(h.posted) > 0 || len(h.receives) > 0 {
				w.fail("%v is in ERR, and of its requests %d did not complete, of its receives %d", h, len(h.posted), len(h.receives))
			}
			h.destroy()
		}
	}
	// Packets of the old connection may still be in flight. They must have no effect, so memory
	// that is cleared now must stay so.
	for _, h := range p.ends {
		h.settleTarget()
		h.host.words.restart(h.lane)
		h.results.clear()
		if h.landing != nil {
			h.landing.reset(h)
		}
		h.inbox, h.written, h.draining = nil, nil, false
		h.window.bound, h.window.busy, h.window.users = false, false, 0
		h.create()
		h.gone = false
	}
	p.connect()
	p.killed, p.down = false, false
	for _, h := range p.ends {
		h.start()
	}
	if p.lives > 0 {
		p.ends[0].host.dev.ScheduleAt(w.randomTime(20), p.kill)
	}
}

// settleTarget checks that the target contains only written data, and clears it. Some of the last
// writes may not have been executed.
func (h *qpProgram) settleTarget() {
	for i, b := range h.target.mr.Bytes() {
		if b != 0 && b != h.target.want[i] {
			h.world.fail("target of %v: byte %d is %#x and neither 0 nor %#x", h, i, b, h.target.want[i])
		}
	}
	h.target.clear()
	h.target.reregister(h, targetAccess)
}

// reregister registers the memory again if it is not registered.
func (a *arena) reregister(h *qpProgram, access verbs.AccessFlags) {
	if err := a.mr.Close(); err != nil && !errors.Is(err, verbs.ErrClosed) {
		h.world.must(err)
	}
	a.register(h.host, a.mr.Bytes(), access)
}

func (l *landing) reset(h *qpProgram) {
	clear(l.arena.want)
	clear(l.arena.mr.Bytes())
	l.arena.reregister(h, 0)
	l.free = l.free[:0]
	for i := range len(l.arena.want) / l.size {
		l.free = append(l.free, i)
	}
}
