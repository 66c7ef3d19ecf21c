package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
)

// A kind is the kind of a send request, in the top byte of its WRID.
type kind uint8

const (
	kindData    kind = 1 + iota // value: position after the last byte
	kindControl                 // value: number of control messages posted
	kindRead                    // RDMA READ of the peer's memory
	kindWrite                   // RDMA WRITE to the peer's memory
	kindAlive                   // probe; see SendKeepAlive
)

func (k kind) wrid(value uint64) uint64 { return uint64(k)<<56 | value }

func splitWRID(wrid uint64) (kind, uint64) { return kind(wrid >> 56), wrid & (1<<56 - 1) }

// A control is a message without application data, or a SrcAvail with some.
type control struct {
	id    bsdh.MID
	flags bsdh.Flags
	ext   [24]byte
	extra []byte // payload
}

// controls are the control messages, queued and posted.
type controls struct {
	ordered         []control // in order with data
	unordered       []control // not ordered with data
	creditUpdateDue bool      // a credit update should be sent

	inline [ControlQueue][MaxInline]byte // buffer of message n at index n modulo ControlQueue
	depth  uint64                        // maximum number of messages posted and not completed
	sent   uint64                        // number posted since the connection began
	done   uint64                        // number completed
}

func (q *controls) isFull() bool { return q.sent-q.done >= q.depth }

// advertisedReceives records the local receives that the peer knows of. The header of every
// message advertises them; without other messages a credit update is sent.
type advertisedReceives struct {
	atSeq         uint32 // last message received at the last advertisement
	count         int    // receives posted at that time
	emptyMessages int    // messages received since then that are only credit updates
}

func (w *advertisedReceives) record(received uint32, posted int) {
	*w = advertisedReceives{atSeq: received, count: min(posted, 1<<16-1)}
}

// A receiveQuery asks the peer about its receives with NIC flow control; see mayLend.
type receiveQuery struct {
	wantLend  bool // a caller wants to lend memory and copies nothing meanwhile
	due       bool // no query since then, or data has been sent after the last query
	asked     bool // a query is outstanding
	peerAsked bool // the peer has a query outstanding, and no receive is posted yet
}

// handleEmptyData handles a Data message without payload: a query, or the reply to the local one.
func (q *receiveQuery) handleEmptyData(question bool) {
	q.peerAsked = q.peerAsked || question
	q.asked = q.asked && question
}

// An offer is local memory that the peer may read (SrcAvail). At most one exists; the memory
// belongs to the application again when it is not live.
type offer struct {
	live            bool
	cancelled       bool
	cancelSeq       uint64 // control number of the SrcAvailCancel once posted
	cancelDelivered bool   // the peer's adapter has acknowledged the SrcAvailCancel
	total           int    // bytes offered
	inline          int    // of these, sent in the SrcAvail itself
	readByPeer      int    // of these, read by the peer
	refused         bool   // the peer requested the remaining bytes as Data messages
}

// A peerSink is memory of the peer's application that the local side may write to (SinkAvail).
// Data sent instead voids it.
type peerSink struct {
	live bool
	addr uint64
	rkey uint32
	len  uint32
}

// A sink is local memory that the peer may write to (SinkAvail).
type sink struct {
	live      bool
	cancelled bool
	total     int
	written   int // bytes written by the peer, not yet returned by SinkWritten
}

// A peerSource is memory of the peer's application that the local side may read (SrcAvail). Its
// bytes follow all buffered data.
type peerSource struct {
	live       bool
	addr       uint64
	rkey       uint32
	left       uint32 // bytes not read yet
	unreported uint32 // bytes read and not reported to the peer
	cancelled  bool   // the peer has sent SrcAvailCancel
	dropped    bool   // withdrawn by a mode change; only the outstanding RDMA READ remains
}

// A transfer is an RDMA READ of a peerSource or an RDMA WRITE to a peerSink. At most one of each
// is outstanding.
type transfer struct {
	outstanding bool
	length      int // of the outstanding one, in bytes
	done        int // bytes transferred, not yet returned by takeDone
}

// start records a transfer of n bytes.
func (t *transfer) start(n uint32) { t.outstanding, t.length = true, int(n) }

// complete records the completion of the transfer, and returns its length.
func (t *transfer) complete() int {
	t.outstanding = false
	t.done += t.length
	return t.length
}

// takeDone returns the number of bytes transferred since the last call, and whether no transfer
// is outstanding.
func (t *transfer) takeDone() (n int, done bool) {
	n, t.done = t.done, 0
	return n, !t.outstanding
}

// modes are the transfer modes of both directions.
type modes struct {
	send, recv bsdh.Mode
	unacked    bool   // the peer has not acknowledged the last local ModeChange of send
	posted     bool   // that ModeChange has been posted
	changeSeq  uint32 // its sequence number
}

// newModes returns the initial modes: combined with Credit, as in the standard, and permanently
// pipelined between peers with a ring.
func newModes(d flow.Control) modes {
	if d == flow.Credit {
		return modes{send: bsdh.Combined, recv: bsdh.Combined}
	}
	return modes{send: bsdh.Pipelined, recv: bsdh.Pipelined}
}

// recordModeChange records that a ModeChange is posted as message seq.
func (m *modes) recordModeChange(seq uint32) {
	if m.unacked && !m.posted {
		m.posted, m.changeSeq = true, seq
	}
}

// handleAck applies the acknowledgement of all messages up to seq.
func (m *modes) handleAck(seq uint32) {
	if m.unacked && m.posted && int32(seq-m.changeSeq) >= 0 {
		m.unacked = false
	}
}

// modeChangeAllowed implements the standard's table of mode changes. The source may change from
// combined to buffered or pipelined, and from pipelined to combined; the sink from buffered to
// combined.
func modeChangeAllowed(bySource bool, from, to bsdh.Mode) bool {
	if !bySource {
		return from == bsdh.Buffered && to == bsdh.Combined
	}
	switch from {
	case bsdh.Combined:
		return to == bsdh.Buffered || to == bsdh.Pipelined
	case bsdh.Pipelined:
		return to == bsdh.Combined
	}
	return false
}

// urgentData is the state of out-of-band data: a byte of the stream that the sender marks. As in
// TCP, a new mark replaces the previous one.
type urgentData struct {
	sendPos         uint64 // position after the local urgent byte in the written stream
	unposted        bool   // the urgent byte is not posted
	unwritten       bool   // the urgent byte is not written, for lack of space in the send buffer
	announcedToPeer bool   // the peer knows of the urgent byte

	announced bool   // the peer has announced an urgent byte
	recvPos   uint64 // position after the peer's last urgent byte in the read stream
}

// setMark marks the byte before pos in the written stream.
func (u *urgentData) setMark(pos uint64) { u.sendPos, u.unposted, u.unwritten = pos, true, false }

// isPending reports whether the urgent byte is not posted.
func (u *urgentData) isPending() bool { return u.unposted || u.unwritten }

// endsMessage reports whether a message that ends at end carries the urgent byte as its last, and
// if so clears the mark.
func (u *urgentData) endsMessage(end uint64) bool {
	if !u.unposted || end != u.sendPos {
		return false
	}
	u.unposted = false
	return true
}

// recordArrival records an urgent byte before pos in the read stream.
func (u *urgentData) recordArrival(pos uint64) { u.recvPos, u.announced = pos, false }

// A bufferResize holds the sizes of receive buffers with Credit, including the header: the local
// one, which the peer may ask to change, and the peer's.
type bufferResize struct {
	ours      int  // current size
	wanted    int  // requested by the peer and not decided; 0 for none
	posted    int  // posted receives of the old size
	switching bool // the ChRcvBufAck follows when these are used

	theirs uint32 // current size
	asked  bool   // a ChRcvBuf is outstanding
}

func (r *bufferResize) start(cfg *Config, p *Peer) { r.ours, r.theirs = cfg.slotBytes(), p.BufferBytes }

// A ringChange is the replacement of a receive ring, local or at the peer.
type ringChange struct {
	size        int  // capacity of the local ring, after a pending change
	maxSize     int  // maximum capacity
	tooSmall    bool // a longer ring is wanted
	offered     bool // local: RingChange is queued, RingSwitched has not arrived
	peerPending bool // peer's: RingSwitched is queued
	next        bsdh.RingChange
}
