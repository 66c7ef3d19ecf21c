package detector

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
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Config configures a Detector.
type Config struct {
	Engine   *engine.Engine
	Watchdog time.Duration     // time after which a wait is reported; 0 reports only deadlocks and mismatches, after a minute; negative is never
	GiveUp   time.Duration     // liveness timeout of a rank
	Report   func(text string) // receives the reports; nil prints them on standard error
	Signal   string            // name of the signal that requests a report, "USR1" or "USR2"; "" is none
}

// Calls describe the collective calls and the messages of a rank, and compare its calls with
// those of other ranks. The detector calls them with the engine's lock held.
type Calls interface {
	// HandlePacket handles a deadlock.PacketMismatch, a PacketCallEnded or a PacketProbe with
	// a payload. An error is a protocol violation.
	HandlePacket(from int, h *envelope.Header, payload []byte) error

	// DescribeLastCall describes the last send or receive of the rank.
	DescribeLastCall(send bool, peer int, e match.Envelope) string

	// LastCalls returns the last collective calls, of at most max communicators.
	LastCalls(max int) []deadlock.Collective

	// DescribeMessage describes a message, a receive or a send without a match. It reports
	// whether reports list it.
	DescribeMessage(e match.Envelope, from, to, bytes int) (m deadlock.Message, listed bool)
}

// Times are the times of a detector. The engine's lock guards them.
type Times struct {
	Interval         time.Duration // between two samples
	Alarm            time.Duration // time after which a wait raises the alarm; 0 is never
	ReplyTimeout     time.Duration // for the states of the other ranks
	MaxProbeInterval time.Duration // between two liveness probes of a rank
}

const (
	sampleInterval = 500 * time.Millisecond
	defaultAlarm   = time.Minute // if Config.Watchdog is 0
	probesPerLoss  = 5           // minimum number of liveness probes in the time of Config.GiveUp
)

// Detector samples the waiting calls of a rank twice a second, in a goroutine. It
//
//   - drives progress if no goroutine does, so that queries of other ranks are answered while
//     the program computes;
//   - sends liveness probes to the ranks that are waited for;
//   - makes rank 0 query the state of all ranks when a wait exceeds the alarm time.
//
// Calls that do not wait long cost only a counter. The engine's lock guards the fields that
// other goroutines use.
type Detector struct {
	Times
	engine       *engine.Engine
	calls        Calls
	alwaysReport bool // report every alarm, not only deadlocks
	print        func(string)

	waits      map[any]*waitState // waiting calls by waitKey, and polled conditions by engine.PollRecord.Key
	callCount  uint64             // number of calls at the last sample
	lastCallAt time.Time          // time at which callCount changed
	pollState
	lossState
	flushState
	queryState
	worker
}

// worker is the goroutine of a detector.
type worker struct {
	tasks      chan func()
	signals    chan os.Signal // signals that request a report, or nil
	stopCh     chan struct{}
	stopOnce   sync.Once
	goroutines sync.WaitGroup
	stopped    bool // guarded by the engine's lock
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

// New returns a detector that is not started. It listens for the signal from now on.
func New(c Config) *Detector {
	d := &Detector{
		Times:  Times{Interval: sampleInterval, Alarm: max(0, cmp.Or(c.Watchdog, defaultAlarm)), ReplyTimeout: stateTimeout, MaxProbeInterval: max(c.GiveUp/probesPerLoss, sampleInterval)},
		engine: c.Engine, alwaysReport: c.Watchdog > 0, print: c.Report,
		waits: map[any]*waitState{}, lastCallAt: time.Now(),
		lossState:  lossState{lossesSent: map[int]int{}, reportedLost: map[int]lostRank{}},
		flushState: flushState{unconfirmed: map[int]int{}},
		worker:     worker{tasks: make(chan func(), 16), stopCh: make(chan struct{}), signals: reportSignals(c.Signal)},
	}
	if d.Alarm > 0 {
		d.Interval = min(d.Interval, max(d.Alarm/4, time.Millisecond))
	}
	if d.print == nil {
		d.print = func(text string) { fmt.Fprint(os.Stderr, text) }
	}
	return d
}

// AttachCalls sets the calls. It is called before Start and before the first packet.
func (d *Detector) AttachCalls(calls Calls) { d.calls = calls }

// Start starts the goroutine.
func (d *Detector) Start() { d.goroutines.Go(d.serveTasks) }

// serveTasks samples, runs tasks and handles signals until Stop.
func (d *Detector) serveTasks() {
	tick := time.NewTicker(d.Interval)
	defer tick.Stop()
	for {
		select {
		case <-d.stopCh:
			return
		case f := <-d.tasks:
			f()
		case <-d.signals:
			d.engine.Do(func(core *protocol.Core) { d.raiseAlarm(core, reasonRequested) })
		case <-tick.C:
			d.sampleWaits()
		}
	}
}

// Stop stops the detector and waits for its goroutine. Packets are handled further, but queries
// of other ranks get no reply, and ranks that fail from now on are not reported. It may be called
// more than once.
func (d *Detector) Stop() {
	d.stopOnce.Do(func() { close(d.stopCh) })
	d.goroutines.Wait()
	if d.signals != nil {
		signal.Stop(d.signals)
	}
	d.engine.Do(func(*protocol.Core) { d.stopped = true })
}

// enqueueTask passes f to the goroutine. It drops f if too many tasks are queued, so excess
// queries get no reply.
func (d *Detector) enqueueTask(f func()) {
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

// sampleWaits samples the polled conditions and the waiting calls.
func (d *Detector) sampleWaits() {
	list, more, spent := d.engine.TakePollStats()
	d.engine.Inspect(func(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp) {
		now := time.Now()
		active := d.updateLastCall(last, now)
		for _, x := range d.waits {
			x.missed++
		}
		d.pollStats.addRound(spent)
		d.checkPolls(core, list, more, active, now)
		d.checkWaits(core, waiting, now)
		for key, x := range d.waits {
			if x.missed > 1 {
				delete(d.waits, key)
			}
		}
		d.checkFallback(core, now)
	})
}

// updateLastCall updates the time of the last call, and reports whether there was one since the
// last sample.
func (d *Detector) updateLastCall(last engine.LastOp, now time.Time) bool {
	if last.Calls == d.callCount {
		return false
	}
	d.callCount, d.lastCallAt = last.Calls, now
	return true
}

// trackWait returns the state of a wait or a poll that this sample has found.
func (d *Detector) trackWait(key any, now time.Time) *waitState {
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
func (d *Detector) isDue(passed, interval time.Duration) bool {
	return passed >= interval-d.Interval/2
}

// checkWaits updates the states of the waiting calls, probes the ranks that they wait for and
// raises the alarm.
func (d *Detector) checkWaits(core *protocol.Core, waiting []engine.ActiveWait, now time.Time) {
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
func (d *Detector) isOverdue(x *waitState, now time.Time) bool {
	return d.Alarm > 0 && !x.alarmed && now.Sub(x.alarmFrom) >= d.Alarm
}
