package rnic

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/capture"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/wire"
)

// shard is one engine of a device: a socket, a lock, timers, and the queue
// pairs that live there.
//
// Two rights are separate. The lock guards the queue pairs, and with them the
// sending half of the socket: whoever posts takes it for a moment. The token
// is the right to read the socket: a poller holds it for one look, a waiter
// while it sleeps in the socket, the service goroutine otherwise. The token
// is taken before the lock, never while holding it.
type shard struct {
	dev    *Device
	socket link.Conn                   // the socket: to wake and to close
	conn   link.Conn                   // the socket and what is wrapped around it; changes with lock and token held
	faults atomic.Pointer[impair.Conn] // part of conn, once faults have been asked for
	tap    *capture.Tap                // part of conn, once a capture has; guarded by the device's lock

	mu          sync.Mutex
	tx          *link.Batch
	active      []*QP // have packets to lay out
	ackQueue    []*QP // owe an acknowledgement that waits to be coalesced
	unconfirmed []*QP // of datagrams, with requests in the batch
	timers      timerQueue

	timersDeferredSince reliability.Time // since when timers that are due wait for the socket to be empty, or 0

	packetsSinceAck int       // packets handled since acknowledgements left,
	ackDeferred     bool      // enough for one, but the application was about to reply
	burstPackets    int       // and since a look found nothing; the token's, as is ackEvery
	ackEvery        int       // packets after which they leave; see learnSpacing
	maxAckEvery     int       // ackSpacing of the socket's buffer
	icm             *icmCache // nil if there is no such limit

	ackQueueLen atomic.Int32 // len(owing)
	corked      atomic.Bool  // the batch waits for company
	nextTimer   atomic.Int64 // timers.nextDeadline()
	hasBacklog  atomic.Bool  // a queue pair waits among the timers for its turn

	token           atomic.Bool
	rx              *link.Datagrams // the token holder's, like all up to flows
	pkt             wire.Packet
	flows           flowCache
	emptyPolls      int           // looks in a row that found nothing
	streaming       bool          // enough came since the last acknowledgement to expect more
	received        uint64        // packets read from the socket,
	serviceReceived atomic.Uint64 // of these by the service
	cpuShared       bool          // others wanted the processor when a leader yielded last
	lastLeaderYield int64         // when a leader let the runtime's scheduler run for the last time

	polls         atomic.Uint64 // looks by pollers, waiters that lead, and batches of long posts: the service stays away while this moves
	claimStart    atomic.Int64  // when a poller found the token taken, the first time in claimWindow,
	claimCount    atomic.Int32  // and how often it has since
	recalled      atomic.Bool   // the service is to give up the token
	serviceRuns   atomic.Uint64 // times that the service got it
	tokenWanted   atomic.Bool   // someone waits for a blocked token holder to give way
	seizers       atomic.Int32  // calls of seize that have not got the token
	serving       atomic.Bool   // the token holder is the service
	asleep        atomic.Bool   // the token holder is, or is about to be, asleep in the socket
	sleepDeadline atomic.Int64  // until when at most; 0 for ever

	leader    atomic.Pointer[CQ] // the queue of the waiter who holds the token
	followers atomic.Int32       // waiters that are parked because another leads
	baton     chan struct{}      // tells one of them to try for the token

	monitorParked    atomic.Bool // the one on standby sleeps until a leader comes back
	monitorUnpark    chan struct{}
	serviceRequested atomic.Bool      // something may have to be done while nobody looks
	activity         activityCounters // of a program that is there
	monitorLongSleep atomic.Bool      // the one on standby sleeps until it is roused, or for long
	monitorWake      chan struct{}
	serviceStart     chan struct{} // has the service serve; closed at the end
	serviceStopped   chan struct{} // and that it has
	serviceDone      chan struct{} // closed when the service has ended
	seenWakeups      uint64        // of the device, when the service last let others run,
	lastServiceYield int64         // and when that was
	skipHandovers    atomic.Int32  // calls of relieve that are not worth it, after one that was in vain,
	handoverBackoff  atomic.Int32  // and how many the last such one made it
	leaderSpin       spinner       // how long waiters look, and
	serviceSpinner   spinner       // the service
	multiCPU         bool          // the service may have another processor than those who call
}

// txBatchBytes is how much one batch holds: four full GSO groups.
const txBatchBytes = 256 << 10

// rxBatchSlots is how many datagrams, of up to 64 KiB each, one look takes.
const rxBatchSlots = 16

func newShard(d *Device, conn link.Conn) *shard {
	s := &shard{
		dev: d, socket: conn, conn: conn,
		tx: link.NewBatch(txBatchBytes), rx: link.NewDatagrams(rxBatchSlots),
		baton: make(chan struct{}, 1), monitorUnpark: make(chan struct{}, 1), monitorWake: make(chan struct{}, 1),
		serviceStart: make(chan struct{}), serviceStopped: make(chan struct{}), serviceDone: make(chan struct{}),
	}
	s.maxAckEvery = maxAckInterval(conn.Caps().RecvBuffer)
	s.ackEvery = s.maxAckEvery
	s.leaderSpin.init(d.options.Spin)
	s.serviceSpinner.init(serviceSpin)
	s.multiCPU = min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) > 1
	s.icm = newICMCache(d.options.ICM, d.clock)
	s.flows.local = conn.LocalAddr()
	return s
}

// markActive notes that q may have packets to lay out. The lock is held, as in
// all methods up to flush.
func (s *shard) markActive(q *QP) {
	if !q.active {
		q.active = true
		s.active = append(s.active, q)
	}
}

// drainActive lays out what queue pairs have to send, sets their timers, and notes
// which owe an acknowledgement. Packets may remain in the batch.
func (s *shard) drainActive(now reliability.Time) {
	for i := 0; i < len(s.active); i++ {
		q := s.active[i]
		q.active = false
		s.active[i] = nil
		if !q.destroyed {
			s.drainQP(q, now)
		}
	}
	s.active = s.active[:0]
}

// maxDrainBatches bounds what one queue pair sends at a stretch: the others, and
// who waits for the lock, have their turn before it goes on.
const maxDrainBatches = 4

// deferDrain lets q go on at the next look.
func (s *shard) deferDrain(q *QP, now reliability.Time) {
	s.timers.schedule(q, now)
	s.hasBacklog.Store(true)
	s.publishDeadline()
}

// flushBeforeClose sends what q owes its peer before the queue pair or the device goes: an
// adapter in hardware has acknowledged a message before anyone can know of it.
func (s *shard) flushBeforeClose(q *QP, now reliability.Time) {
	q.core.ExpireDelayedAck()
	s.drainQP(q, now)
	s.drainAcks(now)
	s.flush()
}

// drainQP lays out what q has to send, but no more than drainBatches at a time.
func (s *shard) drainQP(q *QP, now reliability.Time) {
	if q.overran {
		s.flushZeroCopy()
		q.failOverrun(now)
	}
	for batches := 1; q.core.Drain(now, s.tx); batches++ {
		s.trackUnconfirmed(q)
		s.flush()
		if !s.serving.Load() {
			s.polls.Add(1) // somebody is at work: the service need not come
		}
		if batches == maxDrainBatches {
			s.deferDrain(q, now)
			break
		}
	}
	s.trackUnconfirmed(q)
	q.sendBlocked = q.core.HasUnsent()
	if q.core.HasPendingAck() && !q.ackQueued {
		q.ackQueued = true
		s.ackQueue = append(s.ackQueue, q)
		s.ackQueueLen.Store(int32(len(s.ackQueue)))
	}
	s.armTimer(q)
}

// trackUnconfirmed has q's requests that are in the batch complete when it has left.
func (s *shard) trackUnconfirmed(q *QP) {
	if q.core.NeedsConfirm() && !q.confirmPending {
		q.confirmPending = true
		s.unconfirmed = append(s.unconfirmed, q)
	}
}

// armTimer sets q's timer.
func (s *shard) armTimer(q *QP) {
	d := q.core.Deadline()
	if d == 0 {
		return
	}
	s.timers.schedule(q, d)
	s.publishDeadline()
}

// publishDeadline publishes the earliest deadline, and wakes a sleeper that would
// miss it.
func (s *shard) publishDeadline() {
	next := int64(s.timers.nextDeadline())
	if next == s.nextTimer.Load() {
		return
	}
	s.nextTimer.Store(next)
	if s.asleep.Load() {
		if till := s.sleepDeadline.Load(); till == 0 || next < till {
			s.socket.Wake()
		}
	}
}

// drainAcks lays out the acknowledgements that are owed, behind whatever is
// in the batch already.
func (s *shard) drainAcks(now reliability.Time) {
	s.packetsSinceAck, s.ackDeferred = 0, false
	if len(s.ackQueue) == 0 {
		return
	}
	for i, q := range s.ackQueue {
		q.ackQueued = false
		s.ackQueue[i] = nil
		if q.destroyed {
			continue
		}
		for q.core.DrainAck(now, s.tx) {
			s.flush()
		}
	}
	s.ackQueue = s.ackQueue[:0]
	s.ackQueueLen.Store(0)
}

// runTimers resumes the queue pairs that wait for their turn, and, if advance is set, advances those
// whose time has come. Without it those wait: the socket has more to read.
func (s *shard) runTimers(now reliability.Time, advance bool) {
	s.hasBacklog.Store(false)
	if advance {
		s.timersDeferredSince = 0
	}
	for q := s.timers.popDue(now); q != nil; q = s.timers.popDue(now) {
		if advance {
			q.core.Advance(now)
		}
		s.markActive(q)
	}
	s.nextTimer.Store(int64(s.timers.nextDeadline()))
}

// When posts of a stream wait for company: the batch is not large yet, and as much as it
// holds, and a little more, is on the wire already. The acknowledgement of that will come, and
// send the batch if nothing else does before: another post, a look of a poller, or the service.
// (Four times as much cost streams through small buffers a quarter; nothing more than the little
// gave these another quarter, and took 5 % of others.)
const (
	corkBytes   = 48 << 10
	corkPackets = 48
	corkShare   = 2
	corkFloor   = 8 << 10
)

// corkStream reports whether the batch, which q has just added to, may wait.
func (s *shard) corkStream(q *QP) bool {
	bytes, packets := s.tx.Bytes(), s.tx.Len()
	if packets == 0 || bytes >= corkBytes || packets >= corkPackets || s.dev.options.NoService {
		return false
	}
	if q.core.InFlight() < corkShare*(bytes+packets*qp.PacketCost)+corkFloor {
		return false
	}
	s.corked.Store(true)
	s.requestService()
	return true
}

// minGatherFollowers is the number of waiters from which on posts wait for those of others.
const minGatherFollowers = 4

// leaveToLeader reports whether the batch may wait for the waiter who serves the socket:
// he is not asleep, looks again when all that can run have run, and sends what they
// have posted together. That is for many queue pairs with a goroutine each, of
// which the last look has woken some.
func (s *shard) leaveToLeader() bool {
	if s.followers.Load() < minGatherFollowers || s.tx.Len() == 0 || s.tx.Bytes() >= corkBytes || s.tx.Len() >= corkPackets || s.dev.options.NoService {
		return false
	}
	s.corked.Store(true)
	// A leader who goes to sleep, or leaves, either is seen to, or sees that the batch waits.
	return s.leader.Load() != nil && !s.asleep.Load()
}

// flushCorked sends what waits for company.
func (s *shard) flushCorked() {
	if s.corked.Load() {
		s.mu.Lock()
		s.drainAcks(s.dev.now())
		s.flush()
		s.mu.Unlock()
	}
}

// flushZeroCopy sends a batch that refers to payloads where the users have them. Whoever
// is about to handle packets or timers does it, because he may end the requests
// that lend them, and who waits until memory is not touched.
func (s *shard) flushZeroCopy() {
	if s.tx.HasZeroCopy() {
		s.flush()
	}
}

// flush sends the batch, and completes what ends with it.
func (s *shard) flush() {
	if s.tx.Len() == 0 {
		return
	}
	if s.corked.Load() {
		s.corked.Store(false)
	}
	if err := s.conn.WriteBatch(s.tx); err != nil {
		s.dev.linkFailed(err)
	}
	if list := s.tx.Refusals(); len(list) > 0 {
		s.handleRefusals(s.dev.now(), list)
	}
	s.tx.Reset()
	if len(s.unconfirmed) > 0 {
		s.confirmSent()
	}
}

// removeQP takes a destroyed queue pair out of everything.
func (s *shard) removeQP(q *QP) {
	q.destroyed = true
	s.timers.remove(q)
	s.nextTimer.Store(int64(s.timers.nextDeadline()))
}
