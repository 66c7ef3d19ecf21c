package mpi

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// deadlockDetector looks after those who wait, whatever the program does: twice a second a
// goroutine looks who waits for whom. It
//
//   - looks at the network, if nobody does, so that questions of others are answered
//     while the program computes;
//   - asks those who are waited for for a sign of life (lookout_lost.go);
//   - does so for what is asked for again and again, too (lookout_polls.go);
//   - and asks all ranks what they do when one has waited for very long
//     (lookout_report.go).
//
// Who does not wait for long is not concerned: calls note nothing but how many there
// were. The engine's lock guards what is not the goroutine's.
type deadlockDetector struct {
	world        *World
	interval     time.Duration // between two looks
	alarm        time.Duration // after which a wait is too long; 0 is never
	replyTimeout time.Duration // with ranks that do not say what they do
	alwaysReport bool          // a report is wanted, whatever there is to see
	print        func(string)

	waits      map[any]*waitState // who waits, see identity
	polls      pollTracker
	callCount  uint64    // that were made until the last look
	lastCallAt time.Time // when that was another number

	lossesSent   map[int]int // ranks that wait for us: so many lost ranks they have been told of
	lost         []lostRank
	reportedLost map[int]lostRank // from others
	stopped      bool

	query          *stateQuery  // under way, or nil
	lastRound      uint64       // number of the last one
	lastQueryAt    time.Time    // the last one
	quietUntil     time.Time    // until then no alarm is heeded, unless somebody wants to know
	queriedAt      time.Time    // by anybody
	fallbackAt     time.Time    // when we ask ourselves, since rank 0 does not; zero is never
	fallbackReason reportReason // why

	signals chan os.Signal // that ask for a report, or nil

	tasks      chan func() // for the goroutine
	stopCh     chan struct{}
	stopOnce   sync.Once
	goroutines sync.WaitGroup
}

// waitState is somebody who waits.
type waitState struct {
	since         time.Time
	probedAt      time.Time     // when those he waits for were asked last
	probeInterval time.Duration // until they are asked again
	nextRank      int           // of them
	alarmed       bool
	missed        int // looks at which he was not there
}

// Packets of lookouts are Active with the number of the world as Context. Tag says what
// they are for.
//
//	packet  ID     Length          payload
//	Sign    -      -               none: is there anybody? An answer is not needed, the adapter's will do
//	Lost    rank   who says so     why it is lost
//	Alarm   -      an urgency      none: somebody has waited for long; to rank 0
//	Heard   -      -               none: the answer to that
//	Ask     round  -               none: what do you do?
//	State   round  -               a part of a deadlock.State; Synchronous says that it is the last
//	Disagree comm  -               a disagreement
//	Ended    comm  -               a callProbe: that call is over here
//
// A Sign of a rank that waits in a collective call has its communicator as ID and a
// callProbe as payload.
const (
	packetProbe int32 = iota
	packetRankLost
	packetAlarm
	packetAlarmAck
	packetStateQuery
	packetState
	packetDisagreement
	packetCallEnded
)

const (
	sampleInterval = 500 * time.Millisecond
	defaultAlarm   = time.Minute // unless Options.Watchdog says something else
)

func newDeadlockDetector(w *World) *deadlockDetector {
	l := &deadlockDetector{world: w, interval: sampleInterval, alarm: cmp.Or(w.o.Watchdog, defaultAlarm), replyTimeout: stateTimeout, alwaysReport: w.o.Watchdog > 0,
		waits: map[any]*waitState{}, polls: pollTracker{all: map[any]*pollState{}, schedules: map[int]*probeSchedule{}}, lossesSent: map[int]int{}, reportedLost: map[int]lostRank{}, lastCallAt: time.Now(),
		tasks: make(chan func(), 16), stopCh: make(chan struct{}), signals: reportSignals(w.o.reportSignal)}
	l.alarm = max(0, l.alarm)
	if l.alarm > 0 {
		l.interval = min(l.interval, max(l.alarm/4, time.Millisecond))
	}
	if l.print = w.o.Report; l.print == nil {
		l.print = func(text string) { fmt.Fprint(os.Stderr, text) }
	}
	return l
}

// start begins to look out.
func (l *deadlockDetector) start() { l.goroutines.Go(l.run) }

func (l *deadlockDetector) run() {
	tick := time.NewTicker(l.interval)
	defer tick.Stop()
	for {
		select {
		case <-l.stopCh:
			return
		case f := <-l.tasks:
			f()
		case <-l.signals:
			l.world.eng.Do(func(core *protocol.Core) { l.raiseAlarm(core, reasonRequested) })
		case <-tick.C:
			l.sampleWaits()
		}
	}
}

// end ends it. It returns when the goroutine has ended.
func (l *deadlockDetector) end() {
	l.stopOnce.Do(func() { close(l.stopCh) })
	l.goroutines.Wait()
	if l.signals != nil {
		signal.Stop(l.signals)
	}
	l.world.eng.Do(func(*protocol.Core) { l.stopped = true })
}

// enqueueTask has the goroutine do something. Who asks for too much gets no answer.
func (l *deadlockDetector) enqueueTask(f func()) {
	select {
	case l.tasks <- f:
	default:
	}
}

// waitKey tells waits apart. Who wants the lock of a window waits many times.
func waitKey(w engine.ActiveWait) any {
	if x, ok := w.Target.(*winWait); ok {
		return x
	}
	return w.ID
}

// sampleWaits looks what is polled, and who waits.
func (l *deadlockDetector) sampleWaits() {
	list, more, spent := l.world.eng.TakePollStats()
	l.world.eng.Inspect(func(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp) {
		l.polls.stats.add(spent)
		l.updatePolls(core, list, more, last.Calls != l.callCount, time.Now())
		l.checkWaits(core, waiting, last)
	})
}

// checkWaits looks who waits.
func (l *deadlockDetector) checkWaits(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp) {
	now := time.Now()
	if last.Calls != l.callCount {
		l.callCount, l.lastCallAt = last.Calls, now
	}
	for _, x := range l.waits {
		x.missed++
	}
	for _, w := range waiting {
		key := waitKey(w)
		x := l.waits[key]
		if x == nil {
			x = &waitState{since: now, probedAt: now, probeInterval: sampleInterval}
			l.waits[key] = x
		}
		x.missed = 0
		d, ok := w.Target.(waitDescriber)
		if !ok {
			continue
		}
		if now.Sub(x.probedAt) >= x.probeInterval {
			l.probeRanks(core, x, w.Target, d.describeWait(), now)
		}
		if l.alarm > 0 && now.Sub(x.since) >= l.alarm && !x.alarmed && (!d.describeWait().Aside || l.polls.stateOf(w.Target) != nil) {
			x.alarmed = true
			l.raiseAlarm(core, l.alarmReason())
		}
	}
	for key, x := range l.waits {
		if x.missed > 1 {
			delete(l.waits, key)
		}
	}
	if !l.fallbackAt.IsZero() && now.After(l.fallbackAt) {
		l.fallbackAt = time.Time{}
		l.queryStates(core, l.fallbackReason >= reasonWatchdog)
	}
}

// handlePacket handles a packet of another lookout. An error is a breach of the protocol.
func (l *deadlockDetector) handlePacket(from int, h *envelope.Header, payload []byte) error {
	core := l.world.eng.Core()
	switch h.Tag {
	case packetProbe:
		l.handleProbe(core, from)
		if len(payload) > 0 {
			return l.world.handleCallProbe(core, from, h, payload)
		}
	case packetDisagreement:
		return l.world.handleDisagreement(h, payload)
	case packetCallEnded:
		return l.world.handleCallEnded(from, h, payload)
	case packetRankLost:
		return l.handleRankLost(from, h.ID, h.Length, payload)
	case packetAlarm:
		l.sendPacket(core, from, envelope.Header{Tag: packetAlarmAck}, nil)
		l.handleAlarm(core, reportReason(h.Length))
	case packetAlarmAck:
		l.fallbackAt = time.Time{}
	case packetStateQuery:
		l.fallbackAt, l.queriedAt = time.Time{}, time.Now() // somebody asks
		round := h.ID
		l.enqueueTask(func() { l.sendState(from, round) })
	case packetState:
		return l.handleStatePart(from, h, payload)
	default:
		return fmt.Errorf("%w: packet %d of a lookout", protocol.ErrProtocol, h.Tag)
	}
	return nil
}

// sendPacket sends a packet to another lookout. That the rank is lost is told otherwise.
func (l *deadlockDetector) sendPacket(core *protocol.Core, to int, h envelope.Header, payload []byte) {
	h.Context = worldID
	_ = core.SendActive(to, h, payload)
}
