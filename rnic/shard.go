package rnic

import (
	"cmp"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/broker"
	"github.com/softrnic/softrnic/internal/deadline"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/capture"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/internal/sched"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/wire"
)

// A shard is one engine of a device: a socket, a lock, timers, and the queue
// pairs assigned to it.
//
// Two rights are separate. The lock mu guards the queue pairs and the transmit
// side of the socket; a posting goroutine holds it briefly. The token is the
// right to read the socket: a poller holds it for one read, a waiter while it
// leads, also asleep in the socket, and the service goroutine otherwise. The
// token is taken before the lock, never while the lock is held.
type shard struct {
	dev      *Device
	socket   link.Conn                   // the socket itself, to wake and close it
	conn     link.Conn                   // the socket with its wrappers; changes with lock and token held
	faults   atomic.Pointer[impair.Conn] // fault injection in conn, nil until first requested
	tap      *capture.Tap                // capture tap in conn, nil until first requested; guarded by the device's lock
	multiCPU bool                        // more than one processor: the service can run beside the callers

	sendState
	receiveState
	streams shardStreams
	arbiter
	monitorState
}

// A sendState is the part of a shard that mu guards: its queue pairs and the
// batch of packets to send. Other goroutines read the atomics without mu.
type sendState struct {
	mu          sync.Mutex
	tx          *link.Batch
	active      []*queuePair                                // may have packets to build
	ackQueue    []*queuePair                                // have a pending acknowledgement, to be coalesced
	unconfirmed []*queuePair                                // UD queue pairs with requests in the batch, completed when it is sent
	timers      deadline.Heap[reliability.Time, *queuePair] // deadlines that move later stay, so that acknowledgements, which postpone them, cost nothing

	timersDeferredSince reliability.Time // when due timers were first deferred until the socket is empty, or 0

	burst           burst
	packetsSinceAck int       // packets handled since acknowledgements were last sent
	ackDeferred     bool      // acknowledgements are due, but the application is about to reply
	icm             *icmCache // model of an adapter's cache of queue pair contexts, nil if Options.ICM is off
	selective       qp.SelectivePool

	ackQueueLen atomic.Int32 // len(ackQueue)
	corked      atomic.Bool  // the batch is held back to be coalesced with later posts
	nextTimer   atomic.Int64 // timers.Next()
	hasBacklog  atomic.Bool  // a queue pair with more to send is in timers, see deferDrain

	memoryWritten bool // requests of peers have written memory since the last unlock
}

// A receiveState is the part of a shard that belongs to the token holder.
type receiveState struct {
	rx           *link.Datagrams
	pkt          wire.Packet
	flows        flowCache
	headers      [wire.MaxHeaderLen]byte // of pkt, if the sender can still write the packet
	emptyPolls   int                     // consecutive reads that found nothing
	cheapPolls   int                     // such reads without a system call
	streaming    bool                    // enough packets came since the last acknowledgement to expect more
	burstPackets int                     // packets handled since a read found nothing
	ackEvery     int                     // packets per acknowledgement; see adaptAckInterval
	maxAckEvery  int                     // maxAckInterval of the receive buffer

	processorState
}

// A processorState tells the token holder for how long to spin, and when to yield its
// processor. It belongs to the token holder, too.
type processorState struct {
	seenWakeups    uint64 // Device.wakeups when the token holder last called the Go scheduler
	lastYield      int64  // time of that call
	leaderSpinner  sched.Spinner
	serviceSpinner sched.Spinner
	serviceMover   mover
}

// A monitorState is the state of the monitor and service goroutines, and the
// ways to wake them.
type monitorState struct {
	monitorSleep     atomic.Int32 // the sleep that monitorWake ends, or monitorAwake
	monitorWake      chan struct{}
	serviceRequested atomic.Bool      // work is left to the service
	activity         activityCounters // calls that show an active program

	serviceStart   chan struct{} // passes the token to the service; closed at the end
	serviceStopped chan struct{} // signals that the service has released the token
	serviceDone    chan struct{} // closed when the service goroutine has ended
}

// txBatchBytes is the largest capacity of the transmit batch: four full GSO groups.
const txBatchBytes = 256 << 10

// rxBatchSlots is the number of datagrams, of up to 64 KiB each, that one read
// returns.
const rxBatchSlots = 16

func newShard(d *Device, conn link.Conn) *shard {
	s := &shard{
		dev: d, socket: conn, conn: conn, multiCPU: min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) > 1,
		sendState:    sendState{tx: d.options.hooks.Batch},
		receiveState: receiveState{rx: d.options.hooks.Datagrams},
		arbiter:      arbiter{baton: make(chan struct{}, 1)},
		monitorState: monitorState{
			monitorWake: make(chan struct{}, 1), serviceStart: make(chan struct{}), serviceStopped: make(chan struct{}), serviceDone: make(chan struct{}),
		},
	}
	s.streams.tcp, _ = conn.(*link.TCP)
	if s.tx == nil {
		s.tx = link.NewGrowingBatch(txBatchBytes)
	}
	if s.rx == nil {
		s.rx = link.NewDatagrams(rxBatchSlots)
	}
	if d.member != nil {
		s.tx.Separate(broker.MustSeparate)
	}
	s.maxAckEvery = maxAckInterval(conn.Caps().RecvBuffer)
	s.ackEvery = s.maxAckEvery
	s.leaderSpinner.Init(cmp.Or(d.options.Spin, DefaultSpin), d.clock)
	s.leaderSpinner.YieldFunc = d.options.hooks.Yield
	s.serviceSpinner.Init(serviceSpinTime, d.clock)
	if s.icm = newICMCache(d.options.ICM, d.clock); s.icm != nil {
		s.icm.stall = d.options.hooks.Stall
	}
	s.flows.local = conn.LocalAddr()
	return s
}

// unlock releases mu, wakes the goroutines that wait for memory if any was written, and passes the
// records of the section to the log. A section that makes none, or that ends with other locks held,
// unlocks mu.
func (s *shard) unlock() {
	written := s.memoryWritten
	s.memoryWritten = false
	s.mu.Unlock()
	if written {
		s.dev.wakeMemoryWaiters()
	}
	if s.dev.logs.pending.Load() {
		s.dev.emitLogs()
	}
}

// markActive queues q for drainActive. s.mu must be held, as in all methods up
// to flush.
func (s *shard) markActive(q *queuePair) {
	if !q.active {
		q.active = true
		s.active = append(s.active, q)
	}
}

// drainActive builds the pending packets of every active QP, arms its timer and
// queues its acknowledgement. Packets may remain in s.tx; call flush to send
// them.
func (s *shard) drainActive(now reliability.Time) {
	for i := 0; i < len(s.active); i++ {
		q := s.active[i]
		q.active = false
		s.active[i] = nil
		if !q.closed {
			s.drainQP(q, now)
		}
	}
	s.active = s.active[:0]
}

// maxDrainBatches bounds the batches that one queue pair sends at a time, so
// that it starves neither other queue pairs nor goroutines waiting for the
// lock.
const maxDrainBatches = 4

// deferDrain makes the next pollSocket continue to drain q.
func (s *shard) deferDrain(q *queuePair, now reliability.Time) {
	s.timers.SetEarlier(&q.timer, q, now)
	s.hasBacklog.Store(true)
	s.publishDeadline()
}

// flushBeforeClose sends q's pending acknowledgement before q is modified or
// closed, so that the peer's last request completes: hardware acknowledges a
// message before the program learns of it.
func (s *shard) flushBeforeClose(q *queuePair, now reliability.Time) {
	q.core.ExpireDelayedAck()
	s.drainQP(q, now)
	s.drainAcks(now)
	s.flush()
}

// drainQP builds q's pending packets, at most maxDrainBatches batches, sends
// full batches, queues q's acknowledgement and arms its timer.
func (s *shard) drainQP(q *queuePair, now reliability.Time) {
	if q.core.IsStream() {
		s.drainStream(q, now)
		return
	}
	if q.overran {
		s.flushZeroCopy()
		q.failOverrun(now)
	}
	for batches := 1; q.core.Drain(now, s.tx); batches++ {
		s.trackUnconfirmed(q)
		s.flush()
		if !s.token.isServing() {
			s.polls.Add(1) // the poster makes progress: keep the service out
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

// trackUnconfirmed notes that q has requests that complete when the batch is
// sent.
func (s *shard) trackUnconfirmed(q *queuePair) {
	if q.core.NeedsConfirm() && !q.confirmPending {
		q.confirmPending = true
		s.unconfirmed = append(s.unconfirmed, q)
	}
}

// armTimer arms q's timer with its next deadline.
func (s *shard) armTimer(q *queuePair) {
	d := q.core.Deadline()
	if d == 0 {
		return
	}
	s.timers.SetEarlier(&q.timer, q, d)
	s.publishDeadline()
}

// publishDeadline publishes the earliest deadline, and wakes a sleeping token
// holder that would miss it.
func (s *shard) publishDeadline() {
	last, next := s.nextTimer.Load(), int64(s.timers.Next())
	if next == last {
		return
	}
	s.nextTimer.Store(next)
	if (last == 0 || next < last) && s.token.isAsleep() {
		s.socket.Wake()
	}
}

// drainAcks appends all pending acknowledgements to the batch.
func (s *shard) drainAcks(now reliability.Time) {
	s.packetsSinceAck, s.ackDeferred = 0, false
	if len(s.ackQueue) == 0 {
		return
	}
	for i, q := range s.ackQueue {
		q.ackQueued = false
		s.ackQueue[i] = nil
		if q.closed {
			continue
		}
		for q.core.DrainAck(now, s.tx) {
			s.flush()
		}
	}
	s.ackQueue = s.ackQueue[:0]
	s.ackQueueLen.Store(0)
}

// acknowledgeFirst appends q's acknowledgement before the requests that the program posts, as adapters
// in hardware send them: programs that wait for events rely on the completion of a send
// before the answer to it (ib_send_lat -e). It costs latency, as the peer handles the answer later.
func (s *shard) acknowledgeFirst(q *queuePair, now reliability.Time) {
	q.core.ExpireDelayedAck()
	for q.core.DrainAck(now, s.tx) {
		s.flush()
	}
}

// runTimers removes the queue pairs that are due from the timers and activates
// them. It advances their cores only if advance is set; otherwise the socket
// has more to read, and expired timers are deferred.
func (s *shard) runTimers(now reliability.Time, advance bool) {
	s.hasBacklog.Store(false)
	if advance {
		s.timersDeferredSince = 0
	}
	for q := s.timers.PopDue(now); q != nil; q = s.timers.PopDue(now) {
		if advance {
			q.core.Advance(now)
		}
		s.markActive(q)
	}
	s.nextTimer.Store(int64(s.timers.Next()))
}

// flushZeroCopy sends the batch if it refers to user memory. Call it before
// handling packets or timers, which may complete the requests that lend the
// memory, and before waiting until memory is no longer accessed.
func (s *shard) flushZeroCopy() {
	if s.tx.HasZeroCopy() {
		s.flush()
	}
}

// flush sends the batch and completes the requests that end with it.
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

// removeQP marks q as closed and removes its timer.
func (s *shard) removeQP(q *queuePair) {
	q.closed = true
	s.timers.Remove(&q.timer)
	s.nextTimer.Store(int64(s.timers.Next()))
}
