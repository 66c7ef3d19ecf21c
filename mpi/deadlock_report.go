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
func (d *deadlockDetector) alarmReason() reportReason {
	if d.alwaysReport {
		return reasonWatchdog
	}
	return reasonDeadlock
}

// raiseAlarm notifies rank 0 of a wait that exceeds the alarm, or of a requested report.
func (d *deadlockDetector) raiseAlarm(core *protocol.Core, reason reportReason) {
	rank, now := d.world.eng.Rank(), time.Now()
	if rank == 0 || core.PeerError(0) != nil {
		d.handleAlarm(core, reason)
		return
	}
	d.SendPacket(core, 0, envelope.Header{Tag: deadlock.PacketAlarm, Length: uint64(reason)}, nil)
	if d.fallbackAt.IsZero() && now.Sub(d.queriedAt) > coalesceTime {
		d.fallbackAt = now.Add(fallbackDelay + time.Duration(min(rank, 100))*fallbackStep)
		d.fallbackReason = reason
	}
}

// handleAlarm queries all ranks, unless the last query was recent.
func (d *deadlockDetector) handleAlarm(core *protocol.Core, reason reportReason) {
	now := time.Now()
	if d.query != nil || reason == reasonRequested && now.Sub(d.lastQueryAt) > coalesceTime || reason != reasonRequested && now.After(d.quietUntil) {
		d.queryStates(core, reason >= reasonWatchdog)
	}
}

// queryStates starts a query, or joins the one in progress. The caller holds the engine's lock.
func (d *deadlockDetector) queryStates(core *protocol.Core, requested bool) *stateQuery {
	if q := d.query; q != nil {
		q.requested = q.requested || requested
		return q
	}
	d.lastRound++
	d.lastQueryAt = time.Now()
	q := &stateQuery{round: d.lastRound, requested: requested, pending: map[int]bool{}, partial: map[int][]byte{}}
	d.query = q
	for rank := range d.world.eng.Size() {
		if core.PeerError(rank) == nil {
			q.pending[rank] = true
			if rank != d.world.eng.Rank() {
				d.SendPacket(core, rank, envelope.Header{Tag: deadlock.PacketStateQuery, ID: q.round}, nil)
			}
		}
	}
	d.enqueueTask(func() { d.sendState(d.world.eng.Rank(), q.round) })
	time.AfterFunc(d.replyTimeout, func() { d.world.eng.Do(func(*protocol.Core) { d.concludeQuery(q) }) })
	return q
}

// sendState sends the state of this rank to another.
func (d *deadlockDetector) sendState(to int, round uint64) {
	stacks := d.world.eng.WaitStacks()
	d.world.eng.Inspect(func(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp) {
		s := d.localState(core, waiting, last, stacks)
		if to == d.world.eng.Rank() {
			if q := d.query; q != nil && q.round == round {
				d.addState(q, to, s)
			}
			return
		}
		b, limit := s.AppendJSON(nil), d.world.eng.Fabric().Limits(to).Eager
		for last := false; !last; {
			n := min(len(b), limit)
			h := envelope.Header{Tag: deadlock.PacketState, ID: round}
			if last = n == len(b); last {
				h.Flags = envelope.Synchronous
			}
			d.SendPacket(core, to, h, b[:n])
			b = b[n:]
		}
	})
}

// handleStatePart handles a part of the state of a rank.
func (d *deadlockDetector) handleStatePart(from int, h *envelope.Header, payload []byte) error {
	q := d.query
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
	d.addState(q, from, s)
	return nil
}

// addState adds the state of a rank to a query.
func (d *deadlockDetector) addState(q *stateQuery, from int, s *deadlock.State) {
	if !q.pending[from] {
		return
	}
	delete(q.pending, from)
	delete(q.partial, from)
	q.states = append(q.states, s)
	if len(q.pending) == 0 {
		d.concludeQuery(q)
	}
}

// concludeQuery ends a query with the states received so far, analyzes them and prints the
// report.
func (d *deadlockDetector) concludeQuery(q *stateQuery) {
	if d.query != q {
		return
	}
	d.query = nil
	alarm := d.alarm
	minAge := minWaitAge
	if alarm > 0 {
		minAge = min(minAge, alarm/2)
	}
	d.quietUntil = time.Now().Add(quietFactor * alarm)
	go func() { // the analysis and the output may take long
		r := deadlock.Analyze(d.world.eng.Size(), q.states, minAge.Milliseconds())
		printed := q.requested || alarm > 0 && r.IsStuck(alarm.Milliseconds()/2)
		d.world.eng.Do(func(*protocol.Core) {
			if !printed {
				d.quietUntil = time.Now().Add(alarm / 4)
			}
			q.report = r
		})
		if printed {
			d.print(d.formatReport(r))
		}
	}()
}

// formatReport returns a report with its headline.
func (d *deadlockDetector) formatReport(r *deadlock.Report) string {
	return fmt.Sprintf("softrnic mpi: state of the %d ranks of the job, queried by rank %d at %s\n%s",
		d.world.eng.Size(), d.world.eng.Rank(), time.Now().Format(time.TimeOnly), r)
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
	core, err := w.base.Engine.Lock()
	if err != nil {
		return "", w.fail("report", "", err)
	}
	q := w.world.detector.queryStates(core, false)
	w.base.Engine.Unlock()
	if err := w.base.Engine.Wait(ctx, q); err != nil {
		return "", w.fail("report", "", err)
	}
	return w.world.detector.formatReport(q.report), nil
}

// localState returns the state of this rank.
func (d *deadlockDetector) localState(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp, stacks map[uint64][]uintptr) *deadlock.State {
	w, now := d.world, time.Now()
	if last.Calls != d.callCount {
		d.callCount, d.lastCallAt = last.Calls, now
	}
	s := &deadlock.State{Rank: w.eng.Rank(), PID: os.Getpid(), Quiet: now.Sub(d.lastCallAt).Milliseconds()}
	s.Host, _ = os.Hostname()
	described := map[*waitState]bool{}
	for _, x := range waiting {
		describer, ok := x.Target.(deadlock.Describer)
		switch {
		case !ok:
			continue
		case len(s.Calls) == deadlock.MaxListed:
			s.MoreCalls++
			continue
		}
		c := describer.DescribeWait()
		c.At = callerLine(stacks[x.ID])
		if p := d.polledCall(x.Target); p != nil {
			d.markPolled(&c, p)
			described[p] = true
		}
		if state := d.waits[waitKey(x)]; state != nil {
			c.Millis = now.Sub(state.since).Milliseconds()
		}
		s.Calls = append(s.Calls, c)
	}
	s.Calls = append(s.Calls, d.describePolls(now, described)...)
	s.Last = w.calls.DescribeLastCall(last.Send, last.Peer, last.Envelope)
	if last.Calls == 0 {
		s.Last = ""
	}
	s.Collectives = w.calls.LastCalls(deadlock.MaxListed)
	for _, x := range d.lost {
		s.Lost = append(s.Lost, fmt.Sprintf("rank %d: %s", x.rank, x.reason))
	}
	w.addUnmatched(core, s)
	return s
}

// internalPrefixes are the function prefixes that callerLine skips.
var internalPrefixes = [...]string{"github.com/softrnic/softrnic/mpi.", "github.com/softrnic/softrnic/mpi/internal/coll.", "github.com/softrnic/softrnic/mpi/internal/collective.", "github.com/softrnic/softrnic/mpi/internal/engine.", "github.com/softrnic/softrnic/mpi/internal/onesided.", "github.com/softrnic/softrnic/internal/progress."}

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
