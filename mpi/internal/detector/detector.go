package detector

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
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

// Detector samples the waiting calls of a rank twice a second, in a goroutine. It
//
//   - drives progress if no goroutine does, so that queries of other ranks are answered while
//     the program computes;
//   - sends liveness probes to the ranks that are waited for;
//   - makes rank 0 query the state of all ranks when a wait exceeds the alarm time.
//
// Calls that do not wait long cost only a counter.
type Detector struct {
	*rank
	*polls
	*losses
	*flushes
	*queries
	states  states
	signals chan os.Signal // signals that request a report, or nil
	stopped bool           // guarded by the engine's lock

	stopCh     chan struct{}
	stopOnce   sync.Once
	goroutines vtime.Group
}

// New returns a detector that is not started. It listens for the signal from now on.
func New(c Config) *Detector {
	r := &rank{newTimes(c.Watchdog, c.GiveUp), c.Engine}
	d := &Detector{
		rank:    r,
		polls:   &polls{waits: &waits{rank: r, all: map[any]*waitState{}, lastCallAt: vtime.Now()}},
		losses:  &losses{rank: r, lossesSent: map[int]int{}, reportedLost: map[int]lostRank{}},
		flushes: &flushes{rank: r, unconfirmed: map[int]int{}},
		queries: &queries{rank: r, alwaysReport: c.Watchdog > 0, print: c.Report, tasks: make(chan func(), 16)},
		signals: reportSignals(c.Signal), stopCh: make(chan struct{}),
	}
	d.states = states{polls: d.polls, losses: d.losses}
	d.queries.localState = d.states.describeRank
	if d.queries.print == nil {
		d.queries.print = func(text string) { fmt.Fprint(os.Stderr, text) }
	}
	return d
}

// AttachCalls sets the calls. It is called before Start and before the first packet.
func (d *Detector) AttachCalls(calls Calls) { d.states.calls = calls }

// Start starts the goroutine.
func (d *Detector) Start() { d.goroutines.Go(d.serveTasks) }

// serveTasks samples, runs tasks and handles signals until Stop.
func (d *Detector) serveTasks() {
	tick := vtime.NewTicker(d.Interval)
	defer tick.Stop()
	for {
		vtime.WaitUntil(func() bool { return vtime.IsClosed(d.stopCh) || len(d.queries.tasks)+len(d.signals)+len(tick.C) > 0 })
		select {
		case <-d.stopCh:
			return
		case f := <-d.queries.tasks:
			f()
		case <-d.signals:
			d.engine.Do(func(core *protocol.Core) { d.queries.raiseAlarm(core, reasonRequested) })
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

// sampleWaits samples the polled conditions and the waiting calls.
func (d *Detector) sampleWaits() {
	list, more, spent := d.engine.TakePollStats()
	d.engine.Inspect(func(core *protocol.Core, waiting []engine.ActiveWait, last engine.LastOp) {
		now := vtime.Now()
		active := d.polls.updateLastCall(last, now)
		d.polls.startSample()
		d.polls.stats.addRound(spent)
		alarm := d.polls.checkPolls(core, list, more, active, now)
		if d.polls.checkWaits(core, waiting, now) || alarm {
			d.queries.raiseAlarm(core, d.queries.alarmReason())
		}
		d.polls.endSample()
		d.queries.checkFallback(core, now)
	})
}

// HandleRankLost records a lost rank and notifies the ranks that wait for us, unless the rank has
// done so. The caller holds the engine's lock.
func (d *Detector) HandleRankLost(rank int) {
	core := d.engine.Core()
	delete(d.losses.lossesSent, rank)
	d.flushes.dropRank(core, rank)
	if !d.stopped && !hasAnnouncedMismatch(core.PeerError(rank)) {
		d.losses.addLoss(core, rank)
	}
}

// AnnounceDeparture ends a rank that leaves the job before the others: it stops the detector,
// fails all requests and sends the reason to the other ranks. It returns when they have replied
// and all ranks know the mismatches that this rank has found, after timeout at the latest.
func (d *Detector) AnnounceDeparture(cause error, timeout time.Duration) {
	ctx, cancel := vtime.WithTimeout(context.Background(), timeout)
	defer cancel()
	d.Stop()
	d.engine.FailAll()
	if d.engine.Wait(ctx, noTransfers{d.engine.Core()}) == nil {
		_ = d.flushes.flushPackets(ctx, "", cause)
	}
}

// HandlePacket handles a packet of the detector of another rank, an active message with the
// context deadlock.PacketContext. An error is a protocol violation. The caller holds the engine's
// lock.
func (d *Detector) HandlePacket(from int, h *envelope.Header, payload []byte) error {
	core := d.engine.Core()
	switch h.Tag {
	case deadlock.PacketProbe:
		d.losses.handleProbe(core, from)
		if len(payload) > 0 {
			return d.states.calls.HandlePacket(from, h, payload)
		}
	case deadlock.PacketMismatch:
		d.SendPacket(core, from, envelope.Header{Tag: deadlock.PacketConfirm}, nil)
		return d.states.calls.HandlePacket(from, h, payload)
	case deadlock.PacketCallEnded:
		return d.states.calls.HandlePacket(from, h, payload)
	case deadlock.PacketConfirm:
		d.flushes.handleConfirm(core, from)
	case deadlock.PacketFlush:
		d.losses.handleProbe(core, from) // it waits for this rank
		d.flushes.handleFlush(core, from, nil)
	case deadlock.PacketFlushed:
		d.flushes.handleFlushReply(core, from)
	case deadlock.PacketDepart:
		d.losses.handleProbe(core, from)
		d.flushes.handleFlush(core, from, parseDeparture(h, payload))
	case deadlock.PacketRankLost:
		return d.losses.handleRankLost(from, h.ID, h.Length, payload)
	case deadlock.PacketAlarm:
		d.SendPacket(core, from, envelope.Header{Tag: deadlock.PacketAlarmAck}, nil)
		d.queries.handleAlarm(core, reportReason(h.Length))
	case deadlock.PacketAlarmAck:
		d.queries.fallbackAt = time.Time{}
	case deadlock.PacketStateQuery:
		d.queries.handleQuery(from, h.ID)
	case deadlock.PacketState:
		return d.queries.handleStatePart(from, h, payload)
	default:
		return fmt.Errorf("%w: unknown detector packet %d", protocol.ErrProtocol, h.Tag)
	}
	return nil
}
