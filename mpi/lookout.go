package mpi

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpi/engine"
	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/protocol"
)

// lookout looks after those who wait, whatever the program does: twice a second a
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
type lookout struct {
	w        *World
	every    time.Duration // between two looks
	alarm    time.Duration // after which a wait is too long; 0 is never
	patience time.Duration // with ranks that do not say what they do
	always   bool          // a report is wanted, whatever there is to see
	print    func(string)

	seen    map[any]*watched // who waits, see identity
	polls   polling
	calls   uint64    // that were made until the last look
	changed time.Time // when that was another number

	waiters map[int]int // ranks that wait for us: so many lost ranks they have been told of
	lost    []lostRank
	heard   map[int]lostRank // from others
	ended   bool

	flushState

	inquiry    *inquiry  // under way, or nil
	rounds     uint64    // number of the last one
	began      time.Time // the last one
	quiet      time.Time // until then no alarm is heeded, unless somebody wants to know
	questioned time.Time // by anybody
	fallback   time.Time // when we ask ourselves, since rank 0 does not; zero is never
	urgent     urgency   // why

	signals chan os.Signal // that ask for a report, or nil

	tasks chan func() // for the goroutine
	stop  chan struct{}
	once  sync.Once
	work  sync.WaitGroup
}

// watched is somebody who waits.
type watched struct {
	since   time.Time
	asked   time.Time     // when those he waits for were asked last
	pause   time.Duration // until they are asked again
	next    int           // of them
	alarmed bool
	missed  int // looks at which he was not there
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
//	State   round  -               a part of a hang.State; Synchronous says that it is the last
//	Disagree comm  -               a disagreement
//	Ended    comm  -               a callProbe: that call is over here
//	Confirm  -     -               none: the answer to Disagree
//	Flush    -     -               none: answer when all before this is handled
//	Flushed  -     -               none: the answer to Flush and Depart
//	Depart   -     -               why the sender ends before the others; Synchronous says that it is an ErrMismatch. A Flush, too
//
// A Sign of a rank that waits in a collective call has its communicator as ID and a
// callProbe as payload.
const (
	packetSign int32 = iota
	packetLost
	packetAlarm
	packetHeard
	packetQuestion
	packetState
	packetDisagree
	packetEnded
	packetConfirm
	packetFlush
	packetFlushed
	packetDepart
)

const (
	lookTime     = 500 * time.Millisecond
	defaultAlarm = time.Minute // unless Options.Watchdog says something else
)

func newLookout(w *World) *lookout {
	l := &lookout{w: w, every: lookTime, alarm: cmp.Or(w.o.Watchdog, defaultAlarm), patience: answerTime, always: w.o.Watchdog > 0,
		seen: map[any]*watched{}, polls: polling{all: map[any]*polled{}, asked: map[int]*asking{}}, waiters: map[int]int{}, heard: map[int]lostRank{}, changed: time.Now(),
		flushState: flushState{unconfirmed: map[int]int{}},
		tasks:      make(chan func(), 16), stop: make(chan struct{}), signals: reportSignals(w.o.reportSignal)}
	l.alarm = max(0, l.alarm)
	if l.alarm > 0 {
		l.every = min(l.every, max(l.alarm/4, time.Millisecond))
	}
	if l.print = w.o.Report; l.print == nil {
		l.print = func(text string) { fmt.Fprint(os.Stderr, text) }
	}
	return l
}

// start begins to look out.
func (l *lookout) start() { l.work.Go(l.run) }

func (l *lookout) run() {
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case f := <-l.tasks:
			f()
		case <-l.signals:
			l.w.eng.Do(func(core *protocol.Core) { l.raise(core, wanted) })
		case <-tick.C:
			l.tick()
		}
	}
}

// end ends it. It returns when the goroutine has ended.
func (l *lookout) end() {
	l.once.Do(func() { close(l.stop) })
	l.work.Wait()
	if l.signals != nil {
		signal.Stop(l.signals)
	}
	l.w.eng.Do(func(*protocol.Core) { l.ended = true })
}

// later has the goroutine do something. Who asks for too much gets no answer.
func (l *lookout) later(f func()) {
	select {
	case l.tasks <- f:
	default:
	}
}

// identity tells waits apart. Who wants the lock of a window waits many times.
func identity(w engine.Waiting) any {
	if x, ok := w.For.(*winWait); ok {
		return x
	}
	return w.ID
}

// tick looks what is polled, and who waits.
func (l *lookout) tick() {
	list, more, spent := l.w.eng.Polls()
	l.w.eng.Look(func(core *protocol.Core, waiting []engine.Waiting, last engine.Last) {
		l.polls.spent.add(spent)
		l.lookAtPolls(core, list, more, last.Calls != l.calls, time.Now())
		l.look(core, waiting, last)
	})
}

// isDue reports whether this look is the one nearest to the end of a pause. Tickers are not
// exact: a look that came slightly early would otherwise extend the pause by a whole period.
func (l *lookout) isDue(passed, pause time.Duration) bool { return passed >= pause-l.every/2 }

// look looks who waits.
func (l *lookout) look(core *protocol.Core, waiting []engine.Waiting, last engine.Last) {
	now := time.Now()
	if last.Calls != l.calls {
		l.calls, l.changed = last.Calls, now
	}
	for _, x := range l.seen {
		x.missed++
	}
	for _, w := range waiting {
		key := identity(w)
		x := l.seen[key]
		if x == nil {
			x = &watched{since: now, asked: now, pause: lookTime}
			l.seen[key] = x
		}
		x.missed = 0
		d, ok := w.For.(describer)
		if !ok {
			continue
		}
		if l.isDue(now.Sub(x.asked), x.pause) {
			l.ask(core, x, w.For, d.describe(), now)
		}
		if l.alarm > 0 && now.Sub(x.since) >= l.alarm && !x.alarmed && (!d.describe().Aside || l.polls.of(w.For) != nil) {
			x.alarmed = true
			l.raise(core, l.urgency())
		}
	}
	for key, x := range l.seen {
		if x.missed > 1 {
			delete(l.seen, key)
		}
	}
	if !l.fallback.IsZero() && now.After(l.fallback) {
		l.fallback = time.Time{}
		l.inquire(core, l.urgent >= told)
	}
}

// handle handles a packet of another lookout. An error is a breach of the protocol.
func (l *lookout) handle(from int, h *envelope.Header, payload []byte) error {
	core := l.w.eng.Core()
	switch h.Tag {
	case packetSign:
		l.sign(core, from)
		if len(payload) > 0 {
			return l.w.probed(core, from, h, payload)
		}
	case packetDisagree:
		l.tell(core, from, envelope.Header{Tag: packetConfirm}, nil)
		return l.w.toldDisagreement(h, payload)
	case packetConfirm:
		l.handleConfirm(core, from)
	case packetFlush:
		l.handleFlush(core, from, nil)
	case packetFlushed:
		l.handleFlushReply(core, from)
	case packetDepart:
		l.handleFlush(core, from, parseDeparture(h, payload))
	case packetEnded:
		return l.w.ended(from, h, payload)
	case packetLost:
		return l.told(from, h.ID, h.Length, payload)
	case packetAlarm:
		l.tell(core, from, envelope.Header{Tag: packetHeard}, nil)
		l.alarmed(core, urgency(h.Length))
	case packetHeard:
		l.fallback = time.Time{}
	case packetQuestion:
		l.fallback, l.questioned = time.Time{}, time.Now() // somebody asks
		round := h.ID
		l.later(func() { l.answer(from, round) })
	case packetState:
		return l.answered(from, h, payload)
	default:
		return fmt.Errorf("%w: packet %d of a lookout", protocol.ErrProtocol, h.Tag)
	}
	return nil
}

// tell sends a packet to another lookout. That the rank is lost is told otherwise.
func (l *lookout) tell(core *protocol.Core, to int, h envelope.Header, payload []byte) {
	h.Context = worldID
	_ = core.Active(to, h, payload)
}
