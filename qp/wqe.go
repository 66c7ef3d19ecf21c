package qp

import (
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A sendWQE is a posted send request until its completion.
type sendWQE struct {
	id      uint64
	op      verbs.WROpcode
	flags   verbs.SendFlags
	nsge    uint8
	started bool // PSNs are assigned; a local operation was executed
	done    bool // reads and atomics: the response is complete
	inline  uint16
	length  uint32 // bytes of the message
	immInv  uint32 // immediate data or key to invalidate
	rkey    uint32
	remote  uint64
	operand uint64 // compare or add
	swap    uint64
	flush   verbs.Flush

	first, last wire.PSN
	base        uint64 // window coordinate of the first packet, see Core.windowPosition
	got         uint32 // reads: bytes received

	path *wire.Path // UD
	qpn  uint32
	qkey uint32
	bind *verbs.BindMW
}

// expectsResponse reports whether w is answered by a response instead of an
// acknowledgement.
func (w *sendWQE) expectsResponse() bool { return expectsResponse(w.op) }

func expectsResponse(op verbs.WROpcode) bool {
	return op == verbs.WRRDMARead || isAtomic(op) || hasEmptyResponse(op)
}

// hasEmptyResponse reports whether the response is an empty READ response.
func hasEmptyResponse(op verbs.WROpcode) bool {
	return op == verbs.WRFlush || op == verbs.WRAtomicWrite
}

func (w *sendWQE) isAtomic() bool { return isAtomic(w.op) }

func isAtomic(op verbs.WROpcode) bool {
	return op == verbs.WRAtomicCmpSwap || op == verbs.WRAtomicFetchAdd
}

// isLocal reports whether w sends no packet.
func (w *sendWQE) isLocal() bool { return isLocal(w.op) }

func isLocal(op verbs.WROpcode) bool {
	return op == verbs.WRLocalInv || op == verbs.WRBindMW
}

// consumesRecv reports whether w consumes a receive of the peer.
func (w *sendWQE) consumesRecv() bool {
	switch w.op {
	case verbs.WRSend, verbs.WRSendWithImm, verbs.WRSendWithInv, verbs.WRRDMAWriteWithImm:
		return true
	}
	return false
}

// packetCount returns the number of PSNs of w.
func (w *sendWQE) packetCount(mtu uint32) int {
	if w.isAtomic() || w.length <= mtu {
		return 1
	}
	return int((w.length-1)/mtu) + 1
}

// A ring is the index arithmetic of a queue that grows by doubling up to its
// limit, so that an idle queue pair needs little memory. head and tail increase
// without bound and wrap. A slot is an index modulo the size, which is a power
// of two.
type ring struct {
	head, tail uint32
	size       uint32 // number of slots
	limit      uint32 // maximum number of entries
}

const firstSlots = 2

func (r *ring) len() int                    { return int(r.tail - r.head) }
func (r *ring) full() bool                  { return r.tail-r.head >= r.limit }
func (r *ring) slotIndex(i uint32) uint32   { return i & (r.size - 1) }
func (r *ring) mustGrow() bool              { return r.tail-r.head == r.size }
func (r *ring) grownSize() (newSize uint32) { return max(firstSlots, 2*r.size) }
func (r *ring) reset()                      { r.head, r.tail = 0, 0 }

// A sendQueue is the ring of send requests with their gather lists and inline
// data.
type sendQueue struct {
	ring
	wqes      []sendWQE
	sges      []verbs.SGE // maxSGE per slot
	data      []byte      // maxInline per slot, once inline data is used
	maxSGE    int
	maxInline int
}

func (q *sendQueue) wqeAt(i uint32) *sendWQE { return &q.wqes[q.slotIndex(i)] }

func (q *sendQueue) sglAt(i uint32) []verbs.SGE {
	s := int(q.slotIndex(i)) * q.maxSGE
	return q.sges[s : s+int(q.wqeAt(i).nsge)]
}

func (q *sendQueue) inlineData(i uint32) []byte {
	s := int(q.slotIndex(i)) * q.maxInline
	return q.data[s : s+int(q.wqeAt(i).inline)]
}

// push adds a request and returns its index.
func (q *sendQueue) push(inline bool) uint32 {
	if q.mustGrow() {
		q.grow()
	}
	if inline && q.data == nil {
		q.data = make([]byte, int(q.size)*q.maxInline)
	}
	i := q.tail
	q.tail++
	return i
}

func (q *sendQueue) grow() {
	old := *q
	q.size = q.grownSize()
	q.wqes = make([]sendWQE, q.size)
	q.sges = make([]verbs.SGE, int(q.size)*q.maxSGE)
	if old.data != nil {
		q.data = make([]byte, int(q.size)*q.maxInline)
	}
	for i := old.head; i != old.tail; i++ {
		*q.wqeAt(i) = *old.wqeAt(i)
		copy(q.sglAt(i), old.sglAt(i))
		if old.data != nil {
			copy(q.inlineData(i), old.inlineData(i))
		}
	}
}

// A recvQueue is the ring of posted receives.
type recvQueue struct {
	ring
	ids    []uint64
	nsge   []uint8
	sges   []verbs.SGE // maxSGE per slot
	maxSGE int
}

func (q *recvQueue) push(wr *verbs.RecvWR) {
	if q.mustGrow() {
		q.grow()
	}
	s := q.slotIndex(q.tail)
	q.tail++
	q.ids[s] = wr.WRID
	q.nsge[s] = uint8(len(wr.SGList))
	copy(q.sges[int(s)*q.maxSGE:], wr.SGList)
}

func (q *recvQueue) grow() {
	old := *q
	q.size = q.grownSize()
	q.ids = make([]uint64, q.size)
	q.nsge = make([]uint8, q.size)
	q.sges = make([]verbs.SGE, int(q.size)*q.maxSGE)
	for i := old.head; i != old.tail; i++ {
		o, s := old.slotIndex(i), q.slotIndex(i)
		q.ids[s], q.nsge[s] = old.ids[o], old.nsge[o]
		copy(q.sges[int(s)*q.maxSGE:], old.sges[int(o)*q.maxSGE:int(o+1)*q.maxSGE])
	}
}

// Pop implements SharedQueue.
func (q *recvQueue) Pop(wqe *RecvWQE) bool {
	if q.head == q.tail {
		return false
	}
	s := q.slotIndex(q.head)
	q.head++
	wqe.ID = q.ids[s]
	first := int(s) * q.maxSGE
	wqe.SGList = append(wqe.SGList[:0], q.sges[first:first+int(q.nsge[s])]...)
	return true
}

// PushFront implements SharedQueue.
func (q *recvQueue) PushFront(wqe *RecvWQE) {
	if q.mustGrow() {
		q.grow()
	}
	q.head--
	s := q.slotIndex(q.head)
	q.ids[s], q.nsge[s] = wqe.ID, uint8(len(wqe.SGList))
	copy(q.sges[int(s)*q.maxSGE:], wqe.SGList)
}
