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
	base   link.Conn                   // the socket: to wake and to close
	conn   link.Conn                   // the socket and what is wrapped around it; changes with lock and token held
	faults atomic.Pointer[impair.Conn] // part of conn, once faults have been asked for
	tap    *capture.Tap                // part of conn, once a capture has; guarded by the device's lock

	mu      sync.Mutex
	tx      *link.Batch
	active  []*QP // have packets to lay out
	owing   []*QP // owe an acknowledgement that waits to be coalesced
	leaving []*QP // of datagrams, with requests in the batch
	timers  timers

	timersHeld reliability.Time // since when timers that are due wait for the socket to be empty, or 0

	unacked  int       // packets handled since acknowledgements left,
	held     bool      // enough for one, but the application was about to reply
	run      int       // and since a look found nothing; the token's, as is ackEvery
	ackEvery int       // packets after which they leave; see learnSpacing
	ackMost  int       // ackSpacing of the socket's buffer
	icm      *icmCache // nil if there is no such limit

	owed      atomic.Int32 // len(owing)
	corked    atomic.Bool  // the batch waits for company
	nextTimer atomic.Int64 // timers.next()
	backlog   atomic.Bool  // a queue pair waits among the timers for its turn

	token     atomic.Bool
	rx        *link.Datagrams // the token holder's, like all up to flows
	pkt       wire.Packet
	flows     flowCache
	idle      int           // looks in a row that found nothing
	streaming bool          // enough came since the last acknowledgement to expect more
	received  uint64        // packets read from the socket,
	served    atomic.Uint64 // of these by the service
	shared    bool          // others wanted the processor when a leader yielded last
	rested    int64         // when a leader let the runtime's scheduler run for the last time

	polls     atomic.Uint64 // looks by pollers, waiters that lead, and batches of long posts: the service stays away while this moves
	claimed   atomic.Int64  // when a poller found the token taken, the first time in claimWindow,
	claims    atomic.Int32  // and how often it has since
	recalled  atomic.Bool   // the service is to give up the token
	stints    atomic.Uint64 // times that the service got it
	wanted    atomic.Bool   // someone waits for a blocked token holder to give way
	seizing   atomic.Int32  // calls of seize that have not got the token
	serving   atomic.Bool   // the token holder is the service
	blocked   atomic.Bool   // the token holder is, or is about to be, asleep in the socket
	sleepTill atomic.Int64  // until when at most; 0 for ever

	leader    atomic.Pointer[CQ] // the queue of the waiter who holds the token
	followers atomic.Int32       // waiters that are parked because another leads
	baton     chan struct{}      // tells one of them to try for the token

	parked atomic.Bool // the one on standby sleeps until a leader comes back
	unpark chan struct{}
	urged  atomic.Bool // something may have to be done while nobody looks
	signs  signs       // of a program that is there
	dozing atomic.Bool // the one on standby sleeps until it is roused, or for long
	rouse  chan struct{}
	duty   chan struct{} // has the service serve; closed at the end
	off    chan struct{} // and that it has
	done   chan struct{} // closed when the service has ended
	alerts uint64        // of the device, when the service last let others run,
	ran    int64         // and when that was
	vain   atomic.Int32  // calls of relieve that are not worth it, after one that was in vain,
	pause  atomic.Int32  // and how many the last such one made it
	spin   spinner       // how long waiters look, and
	stay   spinner       // the service
	apart  bool          // the service may have another processor than those who call
}

// txBytes is how much one batch holds: four full GSO groups.
const txBytes = 256 << 10

// rxSlots is how many datagrams, of up to 64 KiB each, one look takes.
const rxSlots = 16

func newShard(d *Device, conn link.Conn) *shard {
	s := &shard{
		dev: d, base: conn, conn: conn,
		tx: link.NewBatch(txBytes), rx: link.NewDatagrams(rxSlots),
		baton: make(chan struct{}, 1), unpark: make(chan struct{}, 1), rouse: make(chan struct{}, 1),
		duty: make(chan struct{}), off: make(chan struct{}), done: make(chan struct{}),
	}
	s.ackMost = ackSpacing(conn.Caps().RecvBuffer)
	s.ackEvery = s.ackMost
	s.spin.init(d.options.Spin)
	s.stay.init(serviceSpin)
	s.apart = min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) > 1
	s.icm = newICMCache(d.options.ICM, d.clock)
	s.flows.local = conn.LocalAddr()
	return s
}

// activate notes that q may have packets to lay out. The lock is held, as in
// all methods up to flush.
func (s *shard) activate(q *QP) {
	if !q.active {
		q.active = true
		s.active = append(s.active, q)
	}
}

// settle lays out what queue pairs have to send, sets their timers, and notes
// which owe an acknowledgement. Packets may remain in the batch.
func (s *shard) settle(now reliability.Time) {
	for i := 0; i < len(s.active); i++ {
		q := s.active[i]
		q.active = false
		s.active[i] = nil
		if !q.dead {
			s.drain(q, now)
		}
	}
	s.active = s.active[:0]
}

// drainBatches bounds what one queue pair sends at a stretch: the others, and
// who waits for the lock, have their turn before it goes on.
const drainBatches = 4

// resume lets q go on at the next look.
func (s *shard) resume(q *QP, now reliability.Time) {
	s.timers.set(q, now)
	s.backlog.Store(true)
	s.reschedule()
}

// part sends what q owes its peer before the queue pair or the device goes: an
// adapter in hardware has acknowledged a message before anyone can know of it.
func (s *shard) part(q *QP, now reliability.Time) {
	q.core.SettleAck()
	s.drain(q, now)
	s.acknowledge(now)
	s.flush()
}

// drain lays out what q has to send, but no more than drainBatches at a time.
func (s *shard) drain(q *QP, now reliability.Time) {
	if q.overran {
		s.letGo()
		q.collapse(now)
	}
	for batches := 1; q.core.Drain(now, s.tx); batches++ {
		s.await(q)
		s.flush()
		if !s.serving.Load() {
			s.polls.Add(1) // somebody is at work: the service need not come
		}
		if batches == drainBatches {
			s.resume(q, now)
			break
		}
	}
	s.await(q)
	q.blocked = q.core.HasUnsent()
	if q.core.OwesAck() && !q.owing {
		q.owing = true
		s.owing = append(s.owing, q)
		s.owed.Store(int32(len(s.owing)))
	}
	s.schedule(q)
}

// await has q's requests that are in the batch complete when it has left.
func (s *shard) await(q *QP) {
	if q.core.AwaitsConfirm() && !q.leaving {
		q.leaving = true
		s.leaving = append(s.leaving, q)
	}
}

// schedule sets q's timer.
func (s *shard) schedule(q *QP) {
	d := q.core.Deadline()
	if d == 0 {
		return
	}
	s.timers.set(q, d)
	s.reschedule()
}

// reschedule publishes the earliest deadline, and wakes a sleeper that would
// miss it.
func (s *shard) reschedule() {
	next := int64(s.timers.next())
	if next == s.nextTimer.Load() {
		return
	}
	s.nextTimer.Store(next)
	if s.blocked.Load() {
		if till := s.sleepTill.Load(); till == 0 || next < till {
			s.base.Wake()
		}
	}
}

// acknowledge lays out the acknowledgements that are owed, behind whatever is
// in the batch already.
func (s *shard) acknowledge(now reliability.Time) {
	s.unacked, s.held = 0, false
	if len(s.owing) == 0 {
		return
	}
	for i, q := range s.owing {
		q.owing = false
		s.owing[i] = nil
		if q.dead {
			continue
		}
		for q.core.DrainAck(now, s.tx) {
			s.flush()
		}
	}
	s.owing = s.owing[:0]
	s.owed.Store(0)
}

// runTimers resumes the queue pairs that wait for their turn, and, if advance is set, advances those
// whose time has come. Without it those wait: the socket has more to read.
func (s *shard) runTimers(now reliability.Time, advance bool) {
	s.backlog.Store(false)
	if advance {
		s.timersHeld = 0
	}
	for q := s.timers.due(now); q != nil; q = s.timers.due(now) {
		if advance {
			q.core.Advance(now)
		}
		s.activate(q)
	}
	s.nextTimer.Store(int64(s.timers.next()))
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

// cork reports whether the batch, which q has just added to, may wait.
func (s *shard) cork(q *QP) bool {
	bytes, packets := s.tx.Bytes(), s.tx.Len()
	if packets == 0 || bytes >= corkBytes || packets >= corkPackets || s.dev.options.NoService {
		return false
	}
	if q.core.InFlight() < corkShare*(bytes+packets*qp.PacketCost)+corkFloor {
		return false
	}
	s.corked.Store(true)
	s.hurry()
	return true
}

// crowded is the number of waiters from which on posts wait for those of others.
const crowded = 4

// gather reports whether the batch may wait for the waiter who serves the socket:
// he is not asleep, looks again when all that can run have run, and sends what they
// have posted together. That is for many queue pairs with a goroutine each, of
// which the last look has woken some.
func (s *shard) gather() bool {
	if s.followers.Load() < crowded || s.tx.Len() == 0 || s.tx.Bytes() >= corkBytes || s.tx.Len() >= corkPackets || s.dev.options.NoService {
		return false
	}
	s.corked.Store(true)
	// A leader who goes to sleep, or leaves, either is seen to, or sees that the batch waits.
	return s.leader.Load() != nil && !s.blocked.Load()
}

// uncork sends what waits for company.
func (s *shard) uncork() {
	if s.corked.Load() {
		s.mu.Lock()
		s.acknowledge(s.dev.now())
		s.flush()
		s.mu.Unlock()
	}
}

// letGo sends a batch that refers to payloads where the users have them. Whoever
// is about to handle packets or timers does it, because he may end the requests
// that lend them, and who waits until memory is not touched.
func (s *shard) letGo() {
	if s.tx.Refers() {
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
	if len(s.leaving) > 0 {
		s.confirm()
	}
}

// forget takes a destroyed queue pair out of everything.
func (s *shard) forget(q *QP) {
	q.dead = true
	s.timers.drop(q)
	s.nextTimer.Store(int64(s.timers.next()))
}
