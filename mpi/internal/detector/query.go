package detector

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A rank whose wait exceeds the alarm notifies rank 0, and rank 0 queries the state of all
// ranks. The detectors reply, also while the program computes. So there is one report of the
// job, by rank 0. If rank 0 does not query, the others do, the lowest rank first.

const (
	fallbackDelay = 3 * time.Second        // time in which rank 0 must query
	fallbackStep  = 100 * time.Millisecond // added for each rank
	coalesceTime  = 2 * time.Second        // requests for a report within this time count as one
	maxStateSize  = 256 << 10              // bytes of the state of a rank
	minWaitAge    = time.Second            // waits that are shorter are not analyzed: messages may be in flight
	quietFactor   = 10                     // times the alarm: minimum time between two reports
)

// queries are the queries of this rank and of others. The engine's lock guards it.
type queries struct {
	*rank
	localState   func(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp, stacks map[uint64][]uintptr) *deadlock.State
	tasks        chan func() // for the goroutine of the detector
	alwaysReport bool        // report every alarm, not only deadlocks
	print        func(string)

	query          *stateQuery  // in progress, or nil
	lastRound      uint64       // number of the last query
	lastQueryAt    time.Time    // time of the last query
	quietUntil     time.Time    // alarms before this time are ignored unless a report was requested
	queriedAt      time.Time    // time of the last query by any rank
	fallbackAt     time.Time    // time at which this rank queries if rank 0 does not; zero is never
	fallbackReason reportReason // reason of the fallback query
}

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
	reasonWatchdog                      // a wait exceeds Config.Watchdog; always reported
	reasonRequested                     // a user requests a report
)

// alarmReason returns the reason of alarms of this rank.
func (qs *queries) alarmReason() reportReason {
	if qs.alwaysReport {
		return reasonWatchdog
	}
	return reasonDeadlock
}

// raiseAlarm notifies rank 0 of a wait that exceeds the alarm, or of a requested report.
func (qs *queries) raiseAlarm(core *protocol.Core, reason reportReason) {
	rank, now := qs.engine.Rank(), vtime.Now()
	if rank == 0 || core.PeerError(0) != nil {
		qs.handleAlarm(core, reason)
		return
	}
	qs.SendPacket(core, 0, envelope.Header{Tag: deadlock.PacketAlarm, Length: uint64(reason)}, nil)
	if qs.fallbackAt.IsZero() && now.Sub(qs.queriedAt) > coalesceTime {
		qs.fallbackAt = now.Add(fallbackDelay + time.Duration(min(rank, 100))*fallbackStep)
		qs.fallbackReason = reason
	}
}

// handleAlarm queries all ranks, unless the last query was recent.
func (qs *queries) handleAlarm(core *protocol.Core, reason reportReason) {
	now := vtime.Now()
	if qs.query != nil || reason == reasonRequested && now.Sub(qs.lastQueryAt) > coalesceTime || reason != reasonRequested && now.After(qs.quietUntil) {
		qs.queryStates(core, reason >= reasonWatchdog)
	}
}

// checkFallback queries all ranks if rank 0 should have done so.
func (qs *queries) checkFallback(core *protocol.Core, now time.Time) {
	if !qs.fallbackAt.IsZero() && now.After(qs.fallbackAt) {
		qs.fallbackAt = time.Time{}
		qs.queryStates(core, qs.fallbackReason >= reasonWatchdog)
	}
}

// Report queries the state of all ranks and returns the report. It ends when ctx ends.
func (qs *queries) Report(ctx context.Context) (string, error) {
	core, err := qs.engine.Lock()
	if err != nil {
		return "", err
	}
	q := qs.queryStates(core, false)
	qs.engine.Unlock()
	if err := qs.engine.Wait(ctx, q); err != nil {
		return "", err
	}
	return qs.formatReport(q.report), nil
}

// queryStates starts a query, or joins the one in progress. The caller holds the engine's lock.
func (qs *queries) queryStates(core *protocol.Core, requested bool) *stateQuery {
	if q := qs.query; q != nil {
		q.requested = q.requested || requested
		return q
	}
	qs.lastRound++
	qs.lastQueryAt = vtime.Now()
	q := &stateQuery{round: qs.lastRound, requested: requested, pending: map[int]bool{}, partial: map[int][]byte{}}
	qs.query = q
	for rank := range qs.engine.Size() {
		if core.PeerError(rank) == nil {
			q.pending[rank] = true
			if rank != qs.engine.Rank() {
				qs.SendPacket(core, rank, envelope.Header{Tag: deadlock.PacketStateQuery, ID: q.round}, nil)
			}
		}
	}
	qs.enqueueTask(func() { qs.sendState(qs.engine.Rank(), q.round) })
	vtime.AfterFunc(qs.ReplyTimeout, func() { qs.engine.Do(func(*protocol.Core) { qs.concludeQuery(q) }) })
	return q
}

// handleQuery handles PacketStateQuery. The rank that queries needs no fallback.
func (qs *queries) handleQuery(from int, round uint64) {
	qs.fallbackAt, qs.queriedAt = time.Time{}, vtime.Now()
	qs.enqueueTask(func() { qs.sendState(from, round) })
}

// sendState sends the state of this rank to another.
func (qs *queries) sendState(to int, round uint64) {
	stacks := qs.engine.WaitStacks()
	qs.engine.Inspect(func(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp) {
		s := qs.localState(core, waiting, last, stacks)
		if to == qs.engine.Rank() {
			if q := qs.query; q != nil && q.round == round {
				qs.addState(q, to, s)
			}
			return
		}
		b, limit := s.AppendJSON(nil), qs.engine.Fabric().Limits(to).Eager
		for last := false; !last; {
			n := min(len(b), limit)
			h := envelope.Header{Tag: deadlock.PacketState, ID: round}
			if last = n == len(b); last {
				h.Flags = envelope.Synchronous
			}
			qs.SendPacket(core, to, h, b[:n])
			b = b[n:]
		}
	})
}

// handleStatePart handles a part of the state of a rank.
func (qs *queries) handleStatePart(from int, h *envelope.Header, payload []byte) error {
	q := qs.query
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
	qs.addState(q, from, s)
	return nil
}

// addState adds the state of a rank to a query.
func (qs *queries) addState(q *stateQuery, from int, s *deadlock.State) {
	if !q.pending[from] {
		return
	}
	delete(q.pending, from)
	delete(q.partial, from)
	q.states = append(q.states, s)
	if len(q.pending) == 0 {
		qs.concludeQuery(q)
	}
}

// concludeQuery ends a query with the states received so far, analyzes them and prints the
// report.
func (qs *queries) concludeQuery(q *stateQuery) {
	if qs.query != q {
		return
	}
	qs.query = nil
	alarm := qs.Alarm
	minAge := minWaitAge
	if alarm > 0 {
		minAge = min(minAge, alarm/2)
	}
	qs.quietUntil = vtime.Now().Add(quietFactor * alarm)
	vtime.Go(func() { // the analysis and the output may take long
		r := deadlock.Analyze(qs.engine.Size(), q.states, minAge.Milliseconds())
		printed := q.requested || alarm > 0 && r.IsStuck(alarm.Milliseconds()/2)
		qs.engine.Do(func(*protocol.Core) {
			if !printed {
				qs.quietUntil = vtime.Now().Add(alarm / 4)
			}
			q.report = r
		})
		if printed {
			qs.print(qs.formatReport(r))
		}
	})
}

// enqueueTask passes f to the goroutine. It drops f if too many tasks are queued, so excess
// queries get no reply.
func (qs *queries) enqueueTask(f func()) {
	select {
	case qs.tasks <- f:
	default:
	}
}

// formatReport returns a report with its headline.
func (qs *queries) formatReport(r *deadlock.Report) string {
	return fmt.Sprintf("softrnic mpi: state of the %d ranks of the job, queried by rank %d at %s\n%s",
		qs.engine.Size(), qs.engine.Rank(), vtime.Now().Format(time.TimeOnly), r)
}
