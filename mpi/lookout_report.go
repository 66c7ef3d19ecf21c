package mpi

import (
	"context"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Whoever has waited for too long tells rank 0, and rank 0 asks all ranks what they do.
// All answer, those that compute too: their lookouts do. So there is one report of all,
// by rank 0; if that asks nobody, the others do, the lowest rank first.

const (
	stateTimeout  = 3 * time.Second        // that ranks have to say what they do
	fallbackDelay = 3 * time.Second        // that rank 0 has to ask
	fallbackStep  = 100 * time.Millisecond // longer for each rank
	coalesceTime  = 2 * time.Second        // between wishes of several ranks that mean the same
	maxStateSize  = 256 << 10              // bytes of an answer
	minWaitAge    = time.Second            // how long a wait has to have lasted to be made something of: no message takes so long
	quietFactor   = 10                     // times the alarm, until there is another report
)

// stateQuery is the question to all ranks what they do.
type stateQuery struct {
	round     uint64
	requested bool           // by somebody, whatever it says
	pending   map[int]bool   // ranks that have not answered
	partial   map[int][]byte // what has come
	states    []*deadlock.State
	report    *deadlock.Report
}

// Ready implements engine.Waitable.
func (q *stateQuery) Ready() bool { return q.report != nil }

// reportReason says why there shall be a report.
type reportReason uint64

const (
	reasonDeadlock  reportReason = iota // somebody has waited for long, and only what cannot end well is told
	reasonWatchdog                      // the same, and it is told in any case
	reasonRequested                     // a person wants to know
)

func (l *deadlockDetector) alarmReason() reportReason {
	if l.alwaysReport {
		return reasonWatchdog
	}
	return reasonDeadlock
}

// raiseAlarm is called when somebody has waited for too long, or wants a report.
func (l *deadlockDetector) raiseAlarm(core *protocol.Core, u reportReason) {
	rank, now := l.world.eng.Rank(), time.Now()
	if rank == 0 || core.PeerError(0) != nil {
		l.handleAlarm(core, u)
		return
	}
	l.sendPacket(core, 0, envelope.Header{Tag: packetAlarm, Length: uint64(u)}, nil)
	if l.fallbackAt.IsZero() && now.Sub(l.queriedAt) > coalesceTime {
		l.fallbackAt = now.Add(fallbackDelay + time.Duration(min(rank, 100))*fallbackStep)
		l.fallbackReason = u
	}
}

// handleAlarm asks all ranks, if they have not been asked just now.
func (l *deadlockDetector) handleAlarm(core *protocol.Core, u reportReason) {
	now := time.Now()
	if l.query != nil || u == reasonRequested && now.Sub(l.lastQueryAt) > coalesceTime || u != reasonRequested && now.After(l.quietUntil) {
		l.queryStates(core, u >= reasonWatchdog)
	}
}

// queryStates asks all ranks, if that is not being done.
func (l *deadlockDetector) queryStates(core *protocol.Core, wanted bool) *stateQuery {
	if q := l.query; q != nil {
		q.requested = q.requested || wanted
		return q
	}
	l.lastRound++
	l.lastQueryAt = time.Now()
	q := &stateQuery{round: l.lastRound, requested: wanted, pending: map[int]bool{}, partial: map[int][]byte{}}
	l.query = q
	for rank := range l.world.eng.Size() {
		if core.PeerError(rank) == nil {
			q.pending[rank] = true
			if rank != l.world.eng.Rank() {
				l.sendPacket(core, rank, envelope.Header{Tag: packetStateQuery, ID: q.round}, nil)
			}
		}
	}
	l.enqueueTask(func() { l.sendState(l.world.eng.Rank(), q.round) })
	time.AfterFunc(l.replyTimeout, func() { l.world.eng.Do(func(*protocol.Core) { l.concludeQuery(q) }) })
	return q
}

// sendState tells a rank what this one does.
func (l *deadlockDetector) sendState(to int, round uint64) {
	places := l.world.eng.WaitStacks()
	l.world.eng.Inspect(func(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp) {
		s := l.localState(core, waiting, last, places)
		if to == l.world.eng.Rank() {
			if q := l.query; q != nil && q.round == round {
				l.addState(q, to, s)
			}
			return
		}
		b, limit := s.AppendJSON(nil), l.world.eng.Fabric().Limits(to).Eager
		for last := false; !last; {
			n := min(len(b), limit)
			h := envelope.Header{Tag: packetState, ID: round}
			if last = n == len(b); last {
				h.Flags = envelope.Synchronous
			}
			l.sendPacket(core, to, h, b[:n])
			b = b[n:]
		}
	})
}

// handleStatePart takes a part of an answer.
func (l *deadlockDetector) handleStatePart(from int, h *envelope.Header, payload []byte) error {
	q := l.query
	if q == nil || q.round != h.ID || !q.pending[from] {
		return nil // too late
	}
	q.partial[from] = append(q.partial[from], payload...)
	switch {
	case len(q.partial[from]) > maxStateSize:
		return fmt.Errorf("%w: more than %d bytes about what it does", protocol.ErrProtocol, maxStateSize)
	case h.Flags&envelope.Synchronous == 0:
		return nil
	}
	s, err := deadlock.DecodeState(q.partial[from])
	if err != nil || s.Rank != from {
		return fmt.Errorf("%w: what it says about itself is not understood", protocol.ErrProtocol)
	}
	l.addState(q, from, s)
	return nil
}

// addState takes an answer.
func (l *deadlockDetector) addState(q *stateQuery, from int, s *deadlock.State) {
	if !q.pending[from] {
		return
	}
	delete(q.pending, from)
	delete(q.partial, from)
	q.states = append(q.states, s)
	if len(q.pending) == 0 {
		l.concludeQuery(q)
	}
}

// concludeQuery ends an inquiry, with the answers that there are.
func (l *deadlockDetector) concludeQuery(q *stateQuery) {
	if l.query != q {
		return
	}
	l.query = nil
	alarm := l.alarm
	least := minWaitAge
	if alarm > 0 {
		least = min(least, alarm/2)
	}
	l.quietUntil = time.Now().Add(quietFactor * alarm)
	go func() { // which may take long with many ranks, and printing, too
		r := deadlock.Analyze(l.world.eng.Size(), q.states, least.Milliseconds())
		tell := q.requested || alarm > 0 && r.IsStuck(alarm.Milliseconds()/2)
		l.world.eng.Do(func(*protocol.Core) {
			if !tell {
				l.quietUntil = time.Now().Add(alarm / 4)
			}
			q.report = r
		})
		if tell {
			l.print(l.formatReport(r))
		}
	}()
}

// formatReport is a report with what is around it.
func (l *deadlockDetector) formatReport(r *deadlock.Report) string {
	return fmt.Sprintf("softrnic mpi: what the %d ranks of the job wait for, asked by rank %d at %s\n%s",
		l.world.eng.Size(), l.world.eng.Rank(), time.Now().Format(time.TimeOnly), r)
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
	q := w.detector.queryStates(core, false)
	w.eng.Unlock()
	if err := w.eng.Wait(ctx, q); err != nil {
		return "", w.fail("report", "", err)
	}
	return w.detector.formatReport(q.report), nil
}

// localState is what this rank does.
func (l *deadlockDetector) localState(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp, places map[uint64][]uintptr) *deadlock.State {
	w, now := l.world, time.Now()
	if last.Calls != l.callCount {
		l.callCount, l.lastCallAt = last.Calls, now
	}
	s := &deadlock.State{Rank: w.eng.Rank(), PID: os.Getpid(), Quiet: now.Sub(l.lastCallAt).Milliseconds()}
	s.Host, _ = os.Hostname()
	told := map[*pollState]bool{}
	for _, x := range waiting {
		d, ok := x.Target.(waitDescriber)
		switch {
		case !ok:
			continue
		case len(s.Calls) == deadlock.MaxListed:
			s.MoreCalls++
			continue
		}
		c := d.describeWait()
		c.At = callerLine(places[x.ID])
		if p := l.polls.stateOf(x.Target); p != nil {
			l.polls.markPolled(&c, p)
			told[p] = true
		}
		if seen := l.waits[waitKey(x)]; seen != nil {
			c.Millis = now.Sub(seen.since).Milliseconds()
		}
		s.Calls = append(s.Calls, c)
	}
	s.Calls = append(s.Calls, l.polls.describeCalls(now, told)...)
	s.Last = w.describeLastCall(last.Send, last.Peer, last.Envelope)
	if last.Calls == 0 {
		s.Last = ""
	}
	for _, c := range w.comms.all() {
		if at, ok := c.lastCollective(); ok && len(s.Collectives) < deadlock.MaxListed {
			s.Collectives = append(s.Collectives, at)
		}
	}
	for _, x := range l.lost {
		s.Lost = append(s.Lost, fmt.Sprintf("rank %d: %s", x.rank, x.reason))
	}
	w.addUnmatched(core, s)
	return s
}

// internalPrefixes is where callers are not looked for.
var internalPrefixes = [...]string{"github.com/softrnic/softrnic/mpi.", "github.com/softrnic/softrnic/mpi/internal/coll.", "github.com/softrnic/softrnic/mpi/internal/engine."}

// callerLine is the line of the program that has made a call, with its folder, or "".
func callerLine(pcs []uintptr) string {
	if len(pcs) == 0 {
		return ""
	}
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		inside := f.Function == "" || strings.HasPrefix(f.Function, "runtime.")
		for _, prefix := range internalPrefixes {
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
