package mpi

import (
	"context"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi/engine"
	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/hang"
	"github.com/softrnic/softrnic/mpi/protocol"
)

// Whoever has waited for too long tells rank 0, and rank 0 asks all ranks what they do.
// All answer, those that compute too: their lookouts do. So there is one report of all,
// by rank 0; if that asks nobody, the others do, the lowest rank first.

const (
	answerTime   = 3 * time.Second        // that ranks have to say what they do
	fallbackTime = 3 * time.Second        // that rank 0 has to ask
	fallbackStep = 100 * time.Millisecond // longer for each rank
	together     = 2 * time.Second        // between wishes of several ranks that mean the same
	maxState     = 256 << 10              // bytes of an answer
	settled      = time.Second            // how long a wait has to have lasted to be made something of: no message takes so long
	quietTimes   = 10                     // times the alarm, until there is another report
)

// inquiry is the question to all ranks what they do.
type inquiry struct {
	round  uint64
	wanted bool           // by somebody, whatever it says
	open   map[int]bool   // ranks that have not answered
	text   map[int][]byte // what has come
	states []*hang.State
	report *hang.Report
}

// Ready implements engine.Waitable.
func (q *inquiry) Ready() bool { return q.report != nil }

// urgency says why there shall be a report.
type urgency uint64

const (
	sure   urgency = iota // somebody has waited for long, and only what cannot end well is told
	told                  // the same, and it is told in any case
	wanted                // a person wants to know
)

func (l *lookout) urgency() urgency {
	if l.always {
		return told
	}
	return sure
}

// raise is called when somebody has waited for too long, or wants a report.
func (l *lookout) raise(core *protocol.Core, u urgency) {
	rank, now := l.w.eng.Rank(), time.Now()
	if rank == 0 || core.LostBecause(0) != nil {
		l.alarmed(core, u)
		return
	}
	l.tell(core, 0, envelope.Header{Tag: packetAlarm, Length: uint64(u)}, nil)
	if l.fallback.IsZero() && now.Sub(l.questioned) > together {
		l.fallback = now.Add(fallbackTime + time.Duration(min(rank, 100))*fallbackStep)
		l.urgent = u
	}
}

// alarmed asks all ranks, if they have not been asked just now.
func (l *lookout) alarmed(core *protocol.Core, u urgency) {
	now := time.Now()
	if l.inquiry != nil || u == wanted && now.Sub(l.began) > together || u != wanted && now.After(l.quiet) {
		l.inquire(core, u >= told)
	}
}

// inquire asks all ranks, if that is not being done.
func (l *lookout) inquire(core *protocol.Core, wanted bool) *inquiry {
	if q := l.inquiry; q != nil {
		q.wanted = q.wanted || wanted
		return q
	}
	l.rounds++
	l.began = time.Now()
	q := &inquiry{round: l.rounds, wanted: wanted, open: map[int]bool{}, text: map[int][]byte{}}
	l.inquiry = q
	for rank := range l.w.eng.Size() {
		if core.LostBecause(rank) == nil {
			q.open[rank] = true
			if rank != l.w.eng.Rank() {
				l.tell(core, rank, envelope.Header{Tag: packetQuestion, ID: q.round}, nil)
			}
		}
	}
	l.later(func() { l.answer(l.w.eng.Rank(), q.round) })
	time.AfterFunc(l.patience, func() { l.w.eng.Do(func(*protocol.Core) { l.conclude(q) }) })
	return q
}

// answer tells a rank what this one does.
func (l *lookout) answer(to int, round uint64) {
	places := l.w.eng.Census()
	l.w.eng.Look(func(core *protocol.Core, waiting []engine.Waiting, last engine.Last) {
		s := l.state(core, waiting, last, places)
		if to == l.w.eng.Rank() {
			if q := l.inquiry; q != nil && q.round == round {
				l.take(q, to, s)
			}
			return
		}
		b, limit := s.Append(nil), l.w.eng.Fabric().Limits(to).Eager
		for last := false; !last; {
			n := min(len(b), limit)
			h := envelope.Header{Tag: packetState, ID: round}
			if last = n == len(b); last {
				h.Flags = envelope.Synchronous
			}
			l.tell(core, to, h, b[:n])
			b = b[n:]
		}
	})
}

// answered takes a part of an answer.
func (l *lookout) answered(from int, h *envelope.Header, payload []byte) error {
	q := l.inquiry
	if q == nil || q.round != h.ID || !q.open[from] {
		return nil // too late
	}
	q.text[from] = append(q.text[from], payload...)
	switch {
	case len(q.text[from]) > maxState:
		return fmt.Errorf("%w: more than %d bytes about what it does", protocol.ErrProtocol, maxState)
	case h.Flags&envelope.Synchronous == 0:
		return nil
	}
	s, err := hang.Decode(q.text[from])
	if err != nil || s.Rank != from {
		return fmt.Errorf("%w: what it says about itself is not understood", protocol.ErrProtocol)
	}
	l.take(q, from, s)
	return nil
}

// take takes an answer.
func (l *lookout) take(q *inquiry, from int, s *hang.State) {
	if !q.open[from] {
		return
	}
	delete(q.open, from)
	delete(q.text, from)
	q.states = append(q.states, s)
	if len(q.open) == 0 {
		l.conclude(q)
	}
}

// conclude ends an inquiry, with the answers that there are.
func (l *lookout) conclude(q *inquiry) {
	if l.inquiry != q {
		return
	}
	l.inquiry = nil
	alarm := l.alarm
	least := settled
	if alarm > 0 {
		least = min(least, alarm/2)
	}
	l.quiet = time.Now().Add(quietTimes * alarm)
	go func() { // which may take long with many ranks, and printing, too
		r := hang.Analyze(l.w.eng.Size(), q.states, least.Milliseconds())
		tell := q.wanted || alarm > 0 && r.Stuck(alarm.Milliseconds()/2)
		l.w.eng.Do(func(*protocol.Core) {
			if !tell {
				l.quiet = time.Now().Add(alarm / 4)
			}
			q.report = r
		})
		if tell {
			l.print(l.text(r))
		}
	}()
}

// text is a report with what is around it.
func (l *lookout) text(r *hang.Report) string {
	return fmt.Sprintf("softrnic mpi: what the %d ranks of the job wait for, asked by rank %d at %s\n%s",
		l.w.eng.Size(), l.w.eng.Rank(), time.Now().Format(time.TimeOnly), r)
}

// Report asks all ranks what they do, and returns what they say in words: which calls
// they wait in and for whom, which ranks wait for one another, which collective calls do
// not belong together, and which messages have no receive. Ranks that do not answer
// within some seconds are named. All other ranks go on meanwhile. It gives up when ctx
// ends, or never if it is nil.
func (w *World) Report(ctx context.Context) (string, error) {
	if w.asComm().isNull() {
		return "", (*Comm)(nil).fail("report", "", errNullComm)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	core, err := w.eng.Lock()
	if err != nil {
		return "", w.fail("report", "", err)
	}
	q := w.lookout.inquire(core, false)
	w.eng.Unlock()
	if err := w.eng.Wait(ctx, q); err != nil {
		return "", w.fail("report", "", err)
	}
	return w.lookout.text(q.report), nil
}

// state is what this rank does.
func (l *lookout) state(core *protocol.Core, waiting []engine.Waiting, last engine.Last, places map[uint64][]uintptr) *hang.State {
	w, now := l.w, time.Now()
	if last.Calls != l.calls {
		l.calls, l.changed = last.Calls, now
	}
	s := &hang.State{Rank: w.eng.Rank(), PID: os.Getpid(), Quiet: now.Sub(l.changed).Milliseconds()}
	s.Host, _ = os.Hostname()
	told := map[*polled]bool{}
	for _, x := range waiting {
		d, ok := x.For.(describer)
		switch {
		case !ok:
			continue
		case len(s.Calls) == hang.MaxListed:
			s.MoreCalls++
			continue
		}
		c := d.describe()
		c.At = caller(places[x.ID])
		if p := l.polls.of(x.For); p != nil {
			l.polls.inBackground(&c, p)
			told[p] = true
		}
		if seen := l.seen[identity(x)]; seen != nil {
			c.Millis = now.Sub(seen.since).Milliseconds()
		}
		s.Calls = append(s.Calls, c)
	}
	s.Calls = append(s.Calls, l.polls.calls(now, told)...)
	s.Last = w.lastCall(last.Send, last.Peer, last.Envelope)
	if last.Calls == 0 {
		s.Last = ""
	}
	for _, c := range w.comms.all() {
		if at, ok := c.last(); ok && !c.freed.Load() && len(s.Collectives) < hang.MaxListed {
			s.Collectives = append(s.Collectives, at)
		}
	}
	for _, x := range l.lost {
		s.Lost = append(s.Lost, fmt.Sprintf("rank %d: %s", x.rank, x.why))
	}
	w.leftovers(core, s)
	return s
}

// ours is where callers are not looked for.
var ours = [...]string{"github.com/softrnic/softrnic/mpi.", "github.com/softrnic/softrnic/mpi/coll.", "github.com/softrnic/softrnic/mpi/engine."}

// caller is the line of the program that has made a call, with its folder, or "".
func caller(pcs []uintptr) string {
	if len(pcs) == 0 {
		return ""
	}
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		inside := f.Function == "" || strings.HasPrefix(f.Function, "runtime.")
		for _, prefix := range ours {
			inside = inside || strings.HasPrefix(f.Function, prefix)
		}
		if !inside {
			dir, file := path.Split(f.File)
			return fmt.Sprintf("%s:%d", path.Join(path.Base(dir), file), f.Line)
		}
		if !more {
			return ""
		}
	}
}
