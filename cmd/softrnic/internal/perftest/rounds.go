package perftest

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// rounds is one latency run.
type rounds struct {
	*end
	ctx   context.Context
	alive *watch.Watch
	clock
	phases
	size      int
	wr        []verbs.SendWR
	rwr       []verbs.RecvWR
	wc        []verbs.WC
	looks     int
	sent      int64
	got       int64
	acked     int64
	completed int64   // rounds
	counted   int64   // of these, in the time that counts
	times     []int64 // of each post; nil if timed
}

// newRounds prepares a run of messages of a size, with receives posted.
func (e *end) newRounds(size int) (*rounds, error) {
	r := &rounds{end: e, clock: newClock(), phases: e.phases(), size: size, wc: make([]verbs.WC, 1)}
	if e.sends {
		r.wr = e.sendRequests(0, size)
	}
	if !e.timed {
		r.times = make([]int64, 0, e.Iters)
	}
	if e.receives {
		at, front := e.areas[0], 0
		if e.Connection == verbs.UD {
			front = grhLen
		}
		r.rwr = []verbs.RecvWR{{SGList: []verbs.SGE{at.mr.SGE(at.recv-front, size+front)}}}
		for range e.rxDepth {
			if err := r.giveBack(); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

func (r *rounds) giveBack() (err error) {
	if r.srq != nil {
		_, err = r.srq.PostRecv(r.rwr)
	} else {
		_, err = r.qps[0].PostRecv(r.rwr)
	}
	return err
}

// run does all rounds.
func (r *rounds) run(ctx context.Context, alive *watch.Watch) (err error) {
	r.ctx, r.alive = ctx, alive
	switch {
	case r.Test.fetches():
		err = r.fetch()
	case r.receives:
		err = r.sendRounds()
	default:
		err = r.writeRounds()
	}
	if errors.Is(err, errOver) {
		return nil
	}
	if errors.Is(err, watch.ErrIdle) || errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: %d messages posted, %d received", err, r.sent, r.got)
		if r.Connection != verbs.RC {
			err = fmt.Errorf("%w; what gets lost on the way is not repeated", err)
		}
	}
	return err
}

// more reports whether there are rounds after n of them.
func (r *rounds) more(n int64) bool {
	if r.timed {
		return !r.over(r.now())
	}
	return n < int64(r.Iters)
}

// fetch is the client of read_lat and atomic_lat: the server's program sleeps.
func (r *rounds) fetch() error {
	for r.begin(r.now()); r.more(r.sent); {
		if err := r.post(verbs.SendSignaled); err != nil {
			return err
		}
		if err := r.await(func() bool { return r.acked == r.sent }); err != nil {
			return err
		}
		r.count()
	}
	return nil
}

// count counts a round that is over.
func (r *rounds) count() {
	r.completed++
	if r.timed && r.counts(r.now()) {
		r.counted++
	}
}

// writeRounds polls memory for what comes. The server writes first. Both write
// the number of the round into a message's last byte.
func (r *rounds) writeRounds() error {
	at := r.areas[0]
	last := at.recv + r.size - 1
	come := func() bool {
		word := r.mrs[0].LoadUint64(last &^ 7)
		return byteOf(word, last&7) == byte(r.got)
	}
	mine := &at.mr.Bytes()[at.send+r.size-1]
	defer func(content byte) { *mine = content }(*mine)
	for r.begin(r.now()); r.more(r.sent) || !r.timed && (r.more(r.got) || r.more(r.acked)); {
		if r.more(r.got) && !(r.sent < 1 && !r.client) {
			r.got++
			if err := r.look(come); err != nil {
				return err
			}
		}
		if r.more(r.sent) {
			*mine = byte(r.sent + 1)
			if err := r.post(verbs.SendSignaled); err != nil {
				return err
			}
		}
		if r.acked < r.sent {
			if err := r.await(func() bool { return r.acked == r.sent }); err != nil {
				return err
			}
			r.count()
		}
	}
	return nil
}

// sendRounds waits for receives. The client sends first.
func (r *rounds) sendRounds() error {
	taken := int64(0) // of those that have come
	for r.more(r.sent) || !r.timed && r.more(taken) {
		if r.more(taken) && !(r.sent < 1 && r.client) {
			taken++
			if err := r.await(func() bool { return r.got >= taken }); err != nil {
				return err
			}
			r.begin(r.now())
			r.count()
			if r.timed || taken+int64(r.rxDepth) <= int64(r.Iters) {
				if err := r.giveBack(); err != nil {
					return err
				}
			}
		}
		if !r.more(r.sent) {
			continue
		}
		var signaled verbs.SendFlags
		if (r.sent+1)%int64(r.cqMod) == 0 || !r.timed && r.sent+1 == int64(r.Iters) {
			signaled = verbs.SendSignaled
		}
		if err := r.post(signaled); err != nil {
			return err
		}
		if signaled != 0 {
			if err := r.await(func() bool { return r.acked == r.sent }); err != nil {
				return err
			}
		}
	}
	return nil
}

// post posts the next message.
func (r *rounds) post(signaled verbs.SendFlags) error {
	if r.Gap > 0 {
		for till := r.now() + int64(r.Gap); r.now() < till; {
			r.dev.Progress()
		}
	}
	if !r.timed {
		r.times = append(r.times, r.now())
	}
	r.load(&r.wr[0], 0, 0, r.size)
	r.wr[0].WRID = uint64(r.sent + 1)
	r.wr[0].Flags = r.wr[0].Flags&^verbs.SendSignaled | signaled
	_, err := r.qps[0].PostSend(r.wr)
	r.sent++
	return err
}

// await takes completions until there is what is waited for.
func (r *rounds) await(done func() bool) error {
	for !done() {
		n, err := r.next()
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		r.alive.Beat()
		wc := &r.wc[0]
		switch {
		case wc.Err() != nil:
			return fmt.Errorf("completion with error: failed status %d: %w", wc.Status, wc.Err())
		case wc.Opcode.IsRecv():
			if err := r.checkLength(r.size, wc); err != nil {
				return err
			}
			r.got++
		default:
			r.acked = int64(wc.WRID)
		}
	}
	return nil
}

func (r *rounds) next() (n int, err error) {
	if r.Events {
		n, err = r.cq.PollWait(r.ctx, r.wc)
	} else {
		n, err = r.cq.Poll(r.wc)
	}
	if n == 0 {
		if err := r.idle(); err != nil {
			return 0, err
		}
	}
	return n, err
}

// look polls memory until there is what is waited for.
func (r *rounds) look(come func() bool) error {
	for !come() {
		if r.dev.Progress() == 0 {
			if err := r.idle(); err != nil {
				return err
			}
		}
	}
	r.alive.Beat()
	return nil
}

// idle looks at the context now and then, and at the time.
func (r *rounds) idle() error {
	if r.looks++; r.looks%glance != 0 && !r.Events {
		return nil
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.timed && r.over(r.now()) {
		return errOver
	}
	return nil
}

// errOver ends a wait when the time of the test is over: the other side was
// through before us.
var errOver = errors.New("the time is over")
