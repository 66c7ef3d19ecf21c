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

// A rank whose wait exceeds the alarm notifies rank 0, and rank 0 queries the state of all
// ranks. The detectors reply, also while the program computes. So there is one report of the
// job, by rank 0. If rank 0 does not query, the others do, the lowest rank first.

const (
	stateTimeout  = 3 * time.Second        // for the states of all ranks
	fallbackDelay = 3 * time.Second        // time in which rank 0 must query
	fallbackStep  = 100 * time.Millisecond // added for each rank
	coalesceTime  = 2 * time.Second        // requests for a report within this time count as one
	maxStateSize  = 256 << 10              // bytes of the state of a rank
	minWaitAge    = time.Second            // waits that are shorter are not analyzed: messages may be in flight
	quietFactor   = 10                     // times the alarm: minimum time between two reports
)

// stateQuery is a query of the states of all ranks.
type stateQuery struct {
	round     uint64
	requested bool           // the report is printed in any case
	pending   map[int]bool   // ranks that have not replied
	partial   map[int][]byte // received parts by rank
	states    []*deadlock.State
	report    *deadlock.Report
}

// Ready implements engine.Waitable.
func (q *stateQuery) Ready() bool { return q.report != nil }

// reportReason is the reason for a report.
type reportReason uint64

const (
	reasonDeadlock  reportReason = iota // a wait exceeds the alarm; reported only if it is a deadlock or a mismatch
	reasonWatchdog                      // a wait exceeds Options.Watchdog; always reported
	reasonRequested                     // a user requests a report
)

// alarmReason returns the reason of alarms of this rank.
func (l *deadlockDetector) alarmReason() reportReason {
	if l.alwaysReport {
		return reasonWatchdog
	}
	return reasonDeadlock
}

// raiseAlarm notifies rank 0 of a wait that exceeds the alarm, or of a requested report.
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

// handleAlarm queries all ranks, unless the last query was recent.
func (l *deadlockDetector) handleAlarm(core *protocol.Core, u reportReason) {
	now := time.Now()
	if l.query != nil || u == reasonRequested && now.Sub(l.lastQueryAt) > coalesceTime || u != reasonRequested && now.After(l.quietUntil) {
		l.queryStates(core, u >= reasonWatchdog)
	}
}

// queryStates starts a query, or joins the one in progress. The caller holds the engine's lock.
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

// sendState sends the state of this rank to another.
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

// handleStatePart handles a part of the state of a rank.
func (l *deadlockDetector) handleStatePart(from int, h *envelope.Header, payload []byte) error {
	q := l.query
	if q == nil || q.round != h.ID || !q.pending[from] {
		return nil // too late
	}
	q.partial[from] = append(q.partial[from], payload...)
	switch {
	case len(q.partial[from]) > maxStateSize:
		return fmt.Errorf("%w: state exceeds %d bytes", protocol.ErrProtocol, maxStateSize)
	case h.Flags&envelope.Synchronous == 0:
		return nil
	}
	s, err := deadlock.DecodeState(q.partial[from])
	if err != nil || s.Rank != from {
		return fmt.Errorf("%w: malformed state", protocol.ErrProtocol)
	}
	l.addState(q, from, s)
	return nil
}

// addState adds the state of a rank to a query.
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

// concludeQuery ends a query with the states received so far, analyzes them and prints the
// report.
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
	go func() { // the analysis and the output may take long
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

// formatReport returns a report with its headline.
func (l *deadlockDetector) formatReport(r *deadlock.Report) string {
	return fmt.Sprintf("softrnic mpi: state of the %d ranks of the job, queried by rank %d at %s\n%s",
		l.world.eng.Size(), l.world.eng.Rank(), time.Now().Format(time.TimeOnly), r)
}

// Report queries the state of all ranks and returns a report: the calls in which they wait and
// for which ranks, deadlocks, collective calls that do not match, and messages without a
// receive. It names ranks that do not reply within 3 s. The other ranks continue meanwhile.
// Report ends when ctx ends; a nil ctx never ends.
func (w World) Report(ctx context.Context) (string, error) {
	if w.isNull() {
		return "", w.fail("report", "", errNullComm)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	core, err := w.eng.Lock()
	if err != nil {
		return "", w.fail("report", "", err)
	}
	q := w.world.detector.queryStates(core, false)
	w.eng.Unlock()
	if err := w.eng.Wait(ctx, q); err != nil {
		return "", w.fail("report", "", err)
	}
	return w.world.detector.formatReport(q.report), nil
}

// localState returns the state of this rank.
func (l *deadlockDetector) localState(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp, places map[uint64][]uintptr) *deadlock.State {
	w, now := l.world, time.Now()
	if last.Calls != l.callCount {
		l.callCount, l.lastCallAt = last.Calls, now
	}
	s := &deadlock.State{Rank: w.eng.Rank(), PID: os.Getpid(), Quiet: now.Sub(l.lastCallAt).Milliseconds()}
	s.Host, _ = os.Hostname()
	described := map[*pollState]bool{}
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
			described[p] = true
		}
		if seen := l.waits[waitKey(x)]; seen != nil {
			c.Millis = now.Sub(seen.since).Milliseconds()
		}
		s.Calls = append(s.Calls, c)
	}
	s.Calls = append(s.Calls, l.polls.describeCalls(now, described)...)
	s.Last = w.describeLastCall(last.Send, last.Peer, last.Envelope)
	if last.Calls == 0 {
		s.Last = ""
	}
	for _, c := range w.comms.all() {
		if at, ok := c.lastCollective(); ok && !c.freed.Load() && len(s.Collectives) < deadlock.MaxListed {
			s.Collectives = append(s.Collectives, at)
		}
	}
	for _, x := range l.lost {
		s.Lost = append(s.Lost, fmt.Sprintf("rank %d: %s", x.rank, x.reason))
	}
	w.addUnmatched(core, s)
	return s
}

// internalPrefixes are the function prefixes that callerLine skips.
var internalPrefixes = [...]string{"github.com/softrnic/softrnic/mpi.", "github.com/softrnic/softrnic/mpi/internal/coll.", "github.com/softrnic/softrnic/mpi/internal/engine."}

// callerLine returns the program's file, with its folder, and line that made a call, or "".
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
