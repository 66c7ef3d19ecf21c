package mpi

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// deadlockDetector samples the waiting calls of this rank twice a second, in a goroutine. It
//
//   - drives progress if no goroutine does, so that queries of other ranks are answered while
//     the program computes;
//   - sends liveness probes to the ranks that are waited for (liveness.go);
//   - treats conditions that the program polls as waits (poll_tracker.go);
//   - makes rank 0 query the state of all ranks when a wait exceeds alarm
//     (deadlock_report.go).
//
// Calls that do not wait long cost only a counter. The engine's lock guards the fields that
// other goroutines use.
type deadlockDetector struct {
	world        *job
	interval     time.Duration // between two samples
	alarm        time.Duration // time after which a wait raises the alarm; 0 is never
	replyTimeout time.Duration // for the states of the other ranks
	alwaysReport bool          // report every alarm, not only deadlocks
	print        func(string)

	waits      map[any]*waitState // waiting calls by waitKey, and polled conditions by engine.PollRecord.Key
	pollStats  pollStats
	pollProbes probeSchedule
	morePolls  bool      // there are more polls than the engine records
	callCount  uint64    // number of calls at the last sample
	lastCallAt time.Time // time at which callCount changed

	lossesSent   map[int]int // by rank that waits for us: number of entries of lost sent to it
	lost         []lostRank
	reportedLost map[int]lostRank // losses reported by other ranks
	stopped      bool

	flushState

	query          *stateQuery  // in progress, or nil
	lastRound      uint64       // number of the last query
	lastQueryAt    time.Time    // time of the last query
	quietUntil     time.Time    // alarms before this time are ignored unless a report was requested
	queriedAt      time.Time    // time of the last query by any rank
	fallbackAt     time.Time    // time at which this rank queries if rank 0 does not; zero is never
	fallbackReason reportReason // reason of the fallback query

	signals chan os.Signal // signals that request a report, or nil

	tasks      chan func() // for the goroutine
	stopCh     chan struct{}
	stopOnce   sync.Once
	goroutines sync.WaitGroup
}

// waitState is the state of a call that waits, or of a condition that is polled.
type waitState struct {
	since     time.Time
	probes    probeSchedule
	alarmFrom time.Time // start of the time after which the alarm is raised
	alarmed   bool
	missed    int // number of samples without the wait

	polled bool           // the program polls it
	poll   *deadlock.Poll // nil for a nonblocking collective call, whose goroutine waits
	stack  []uintptr      // of the polling program
}

const (
	sampleInterval = 500 * time.Millisecond
	defaultAlarm   = time.Minute // if Options.Watchdog is 0
)

// newDeadlockDetector returns a detector that is not started.
func newDeadlockDetector(w *job) *deadlockDetector {
	l := &deadlockDetector{world: w, interval: sampleInterval, alarm: cmp.Or(w.o.Watchdog, defaultAlarm), replyTimeout: stateTimeout, alwaysReport: w.o.Watchdog > 0,
		waits: map[any]*waitState{}, lossesSent: map[int]int{}, reportedLost: map[int]lostRank{}, lastCallAt: time.Now(),
		flushState: flushState{unconfirmed: map[int]int{}},
		tasks:      make(chan func(), 16), stopCh: make(chan struct{}), signals: reportSignals(w.o.reportSignal)}
	l.alarm = max(0, l.alarm)
	if l.alarm > 0 {
		l.interval = min(l.interval, max(l.alarm/4, time.Millisecond))
	}
	if l.print = w.o.Report; l.print == nil {
		l.print = func(text string) { fmt.Fprint(os.Stderr, text) }
	}
	return l
}

// start starts the goroutine.
func (d *deadlockDetector) start() { d.goroutines.Go(d.run) }

func (d *deadlockDetector) run() {
	tick := time.NewTicker(d.interval)
	defer tick.Stop()
	for {
		select {
		case <-d.stopCh:
			return
		case f := <-d.tasks:
			f()
		case <-d.signals:
			d.world.eng.Do(func(core *protocol.Core) { d.raiseAlarm(core, reasonRequested) })
		case <-tick.C:
			d.sampleWaits()
		}
	}
}

// stop stops the detector and waits for its goroutine.
func (d *deadlockDetector) stop() {
	d.stopOnce.Do(func() { close(d.stopCh) })
	d.goroutines.Wait()
	if d.signals != nil {
		signal.Stop(d.signals)
	}
	d.world.eng.Do(func(*protocol.Core) { d.stopped = true })
}

// enqueueTask passes f to the goroutine. It drops f if too many tasks are queued, so excess
// queries get no reply.
func (d *deadlockDetector) enqueueTask(f func()) {
	select {
	case d.tasks <- f:
	default:
	}
}

// waitKey returns the identity of a wait.
func waitKey(w engine.ActiveWait) any {
	if x, ok := w.Target.(deadlock.Keyed); ok {
		return x.WaitKey()
	}
	return w.ID
}

// sampleWaits samples the polled requests and the waiting calls.
func (d *deadlockDetector) sampleWaits() {
	list, more, spent := d.world.eng.TakePollStats()
	d.world.eng.Inspect(func(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp) {
		now := time.Now()
		active := last.Calls != d.callCount
		if active {
			d.callCount, d.lastCallAt = last.Calls, now
		}
		for _, x := range d.waits {
			x.missed++
		}
		d.pollStats.add(spent)
		d.checkPolls(core, list, more, active, now)
		d.checkWaits(core, waiting, now)
		for key, x := range d.waits {
			if x.missed > 1 {
				delete(d.waits, key)
			}
		}
		if !d.fallbackAt.IsZero() && now.After(d.fallbackAt) {
			d.fallbackAt = time.Time{}
			d.queryStates(core, d.fallbackReason >= reasonWatchdog)
		}
	})
}

// trackWait returns the state of a wait or a poll that this sample has found.
func (d *deadlockDetector) trackWait(key any, now time.Time) *waitState {
	x := d.waits[key]
	if x == nil {
		x = &waitState{since: now, alarmFrom: now, probes: probeSchedule{last: now, interval: sampleInterval}}
		d.waits[key] = x
	}
	x.missed = 0
	return x
}

// isDue reports whether this sample is the one nearest to the end of an interval. Tickers are
// not exact: a sample slightly too early would otherwise extend the interval by a whole period.
func (d *deadlockDetector) isDue(passed, interval time.Duration) bool {
	return passed >= interval-d.interval/2
}

// checkWaits updates the states of the waiting calls, probes the ranks that they wait for and
// raises the alarm.
func (d *deadlockDetector) checkWaits(core *protocol.Core, waiting []engine.ActiveWait, now time.Time) {
	for _, w := range waiting {
		x := d.trackWait(waitKey(w), now)
		describer, ok := w.Target.(deadlock.Describer)
		if !ok {
			continue
		}
		if d.isDue(now.Sub(x.probes.last), x.probes.interval) {
			h, payload := envelope.Header{}, []byte(nil)
			if n, ok := w.Target.(deadlock.Prober); ok {
				var contextID uint32
				contextID, payload = n.ProbeCall()
				h.ID = uint64(contextID)
			}
			d.probeRanks(core, &x.probes, h, payload, describer.DescribeWait().For, now)
		}
		if d.isOverdue(x, now) && (!describer.DescribeWait().Aside || d.polledCall(w.Target) != nil) {
			x.alarmed = true
			d.raiseAlarm(core, d.alarmReason())
		}
	}
}

// isOverdue reports whether a wait exceeds the alarm time and has not raised the alarm.
func (d *deadlockDetector) isOverdue(x *waitState, now time.Time) bool {
	return d.alarm > 0 && !x.alarmed && now.Sub(x.alarmFrom) >= d.alarm
}

// handlePacket handles a packet of another detector. An error is a protocol violation.
func (d *deadlockDetector) handlePacket(from int, h *envelope.Header, payload []byte) error {
	core := d.world.eng.Core()
	switch h.Tag {
	case deadlock.PacketProbe:
		d.handleProbe(core, from)
		if len(payload) > 0 {
			return d.world.calls.HandlePacket(from, h, payload)
		}
	case deadlock.PacketMismatch:
		d.SendPacket(core, from, envelope.Header{Tag: deadlock.PacketConfirm}, nil)
		return d.world.calls.HandlePacket(from, h, payload)
	case deadlock.PacketConfirm:
		d.handleConfirm(core, from)
	case deadlock.PacketFlush:
		d.handleFlush(core, from, nil)
	case deadlock.PacketFlushed:
		d.handleFlushReply(core, from)
	case deadlock.PacketDepart:
		d.handleFlush(core, from, parseDeparture(h, payload))
	case deadlock.PacketCallEnded:
		return d.world.calls.HandlePacket(from, h, payload)
	case deadlock.PacketRankLost:
		return d.handleRankLost(from, h.ID, h.Length, payload)
	case deadlock.PacketAlarm:
		d.SendPacket(core, from, envelope.Header{Tag: deadlock.PacketAlarmAck}, nil)
		d.handleAlarm(core, reportReason(h.Length))
	case deadlock.PacketAlarmAck:
		d.fallbackAt = time.Time{}
	case deadlock.PacketStateQuery:
		d.fallbackAt, d.queriedAt = time.Time{}, time.Now() // a rank queries
		round := h.ID
		d.enqueueTask(func() { d.sendState(from, round) })
	case deadlock.PacketState:
		return d.handleStatePart(from, h, payload)
	default:
		return fmt.Errorf("%w: unknown detector packet %d", protocol.ErrProtocol, h.Tag)
	}
	return nil
}

// SendPacket sends a packet to another detector. It ignores the error of a lost rank, which
// onRankLost reports.
func (d *deadlockDetector) SendPacket(core *protocol.Core, to int, h envelope.Header, payload []byte) {
	h.Context = worldID
	_ = core.SendActive(to, h, payload)
}
