package rdma

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// maxReceives is the maximum number of receive buffers.
const maxReceives = 1 << 14

// access are the access rights of registrations. They are complete, so that one
// registration serves all uses of its memory.
const access = verbs.AccessLocalWrite | verbs.AccessRemote

// recvSlabs are the buffers of a receive queue, in slabs that are added on demand.
type recvSlabs struct {
	pd    verbs.PD
	queue receiveQueue
	size  int // of a buffer
	each  int // buffers of a slab
	list  []verbs.MR
	wrs   []verbs.RecvWR // of all buffers
	used  []verbs.RecvWR // of buffers to be posted again
	count int
}

// A receiveQueue is a verbs.SRQ or a verbs.QP.
type receiveQueue interface {
	PostRecv([]verbs.RecvWR) (int, error)
}

func newRecvSlabs(pd verbs.PD, queue receiveQueue, size int) *recvSlabs {
	return &recvSlabs{pd: pd, queue: queue, size: (size + 63) &^ 63}
}

// addBuffers adds n buffers and posts them.
func (s *recvSlabs) addBuffers(n int) error {
	if s.each == 0 {
		s.each = n
	}
	for ; n > 0 && s.count+s.each <= maxReceives; n -= s.each {
		mr, err := s.pd.RegMR(make([]byte, s.each*s.size), verbs.AccessLocalWrite)
		if err != nil {
			return err
		}
		s.list = append(s.list, mr)
		for i := range s.each {
			s.wrs = append(s.wrs, verbs.RecvWR{WRID: wrid(wrRecv, s.count+i, 0), SGList: []verbs.SGE{mr.SGE(i*s.size, s.size)}})
		}
		s.count += s.each
		if _, err := s.queue.PostRecv(s.wrs[s.count-s.each:]); err != nil {
			return fmt.Errorf("post %d receives: %w", s.count, err)
		}
	}
	return nil
}

func (s *recvSlabs) buffer(i int) []byte {
	at := i % s.each * s.size
	return s.list[i/s.each].Bytes()[at : at+s.size]
}

// release makes repost post a buffer again.
func (s *recvSlabs) release(i int) { s.used = append(s.used, s.wrs[i]) }

// repostBatch is the maximum number of receives that are posted again together.
const repostBatch = 16

// repost posts used receives again when there are enough of them.
func (s *recvSlabs) repost() error {
	if len(s.used) < min(repostBatch, max(1, s.count/4)) {
		return nil
	}
	_, err := s.queue.PostRecv(s.used)
	s.used = s.used[:0]
	return err
}

// bytes returns the memory of the buffers.
func (s *recvSlabs) bytes() int { return s.count * s.size }

// close deregisters the memory of buffers whose queue is closed.
func (s *recvSlabs) close() (err error) {
	for _, mr := range s.list {
		err = errors.Join(err, mr.Close())
	}
	return err
}

// A sendPool is the pool of send buffers.
type sendPool struct {
	mr    verbs.MR
	size  int // of a buffer
	count int
	free  []int
}

func (p *sendPool) registerBuffers(pd verbs.PD, n, size int) (err error) {
	p.size, p.count = (size+63)&^63, n
	p.mr, err = pd.RegMR(make([]byte, n*p.size), verbs.AccessLocalWrite)
	for i := n - 1; i >= 0; i-- {
		p.free = append(p.free, i)
	}
	return err
}

func (p *sendPool) available() int { return len(p.free) }

// sendFlags returns the flags of a send from a buffer, which is released by the
// completion. The acknowledgement is requested promptly only if buffers are scarce,
// because it costs both ends a context switch. A lost one is detected after
// reliability.DelayedAckProbe.
func (p *sendPool) sendFlags() verbs.SendFlags {
	if 2*p.available() < p.count {
		return verbs.SendSignaled
	}
	return verbs.SendSignaled | verbs.SendDelayAck
}

// alloc returns a free buffer, or -1.
func (p *sendPool) alloc() int {
	n := len(p.free) - 1
	if n < 0 {
		return -1
	}
	i := p.free[n]
	p.free = p.free[:n]
	return i
}

func (p *sendPool) release(i int)          { p.free = append(p.free, i) }
func (p *sendPool) buffer(i int) []byte    { return p.mr.Bytes()[i*p.size : (i+1)*p.size] }
func (p *sendPool) sge(i, n int) verbs.SGE { return p.mr.SGE(i*p.size, n) }

// A transferTable has the transfers in flight.
type transferTable struct {
	list []transfer
	free []int
}

func (m *transferTable) add(v transfer) int {
	v.live, v.parts = true, 1
	if n := len(m.free) - 1; n >= 0 {
		i := m.free[n]
		m.free = m.free[:n]
		m.list[i] = v
		return i
	}
	m.list = append(m.list, v)
	return len(m.list) - 1
}

func (m *transferTable) remove(i int) transfer {
	v := m.list[i]
	m.list[i] = transfer{}
	m.free = append(m.free, i)
	return v
}

// A regCache caches registrations of the program's memory in LRU order, because
// programs send from the same memory repeatedly. A registration keeps its memory alive,
// so that no other memory can reuse its address.
type regCache struct {
	pd               verbs.PD
	list             []*region
	bytes            int
	registered, hits uint64
}

// Bounds of the cached registrations that are not in use.
const (
	cacheRegions = 64
	cacheBytes   = 256 << 20
)

type region struct {
	mr    verbs.MR
	base  uintptr
	users int
}

func (r *region) sge(b []byte) verbs.SGE {
	return r.mr.SGE(int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))-r.base), len(b))
}

// lookup returns a registration that contains b, or nil.
func (c *regCache) lookup(b []byte) *region {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for i := len(c.list) - 1; i >= 0; i-- {
		if r := c.list[i]; r.base <= at && at-r.base+uintptr(len(b)) <= uintptr(r.mr.Len()) {
			copy(c.list[i:], c.list[i+1:])
			c.list[len(c.list)-1] = r
			r.users++
			c.hits++
			return r
		}
	}
	return nil
}

// acquire returns a registration that contains b, a new one if necessary. The caller
// must release it.
func (c *regCache) acquire(b []byte) (*region, error) {
	if r := c.lookup(b); r != nil {
		return r, nil
	}
	mr, err := c.pd.RegMR(b, access)
	if err != nil {
		return nil, fmt.Errorf("register %d bytes: %w", len(b), err)
	}
	r := &region{mr: mr, base: uintptr(unsafe.Pointer(unsafe.SliceData(b))), users: 1}
	c.list = append(c.list, r)
	c.bytes += len(b)
	c.registered++
	c.evictIdle()
	return r, nil
}

// release ends a use of a registration.
func (c *regCache) release(r *region) {
	r.users--
	c.evictIdle()
}

func (c *regCache) evictIdle() {
	for i := 0; i < len(c.list) && (len(c.list) > cacheRegions || c.bytes > cacheBytes); {
		r := c.list[i]
		if r.users > 0 {
			i++
			continue
		}
		c.bytes -= r.mr.Len()
		_ = r.mr.Close() // nothing else refers to it
		c.list = append(c.list[:i], c.list[i+1:]...)
	}
}
