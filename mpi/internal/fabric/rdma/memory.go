package rdma

import (
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// maxReceives is the number of receive buffers at most.
const maxReceives = 1 << 14

// access is what memory is registered for. It is everything, so that one
// registration serves all that its memory is used for.
const access = verbs.AccessLocalWrite | verbs.AccessRemote

// slabs are the receive buffers, in slabs that are added as needed.
type slabs struct {
	pd    verbs.PD
	srq   verbs.SRQ
	size  int // of a buffer
	each  int // buffers of a slab
	list  []verbs.MR
	wrs   []verbs.RecvWR // of all buffers
	count int
}

func (s *slabs) init(pd verbs.PD, srq verbs.SRQ, size int) {
	s.pd, s.srq, s.size = pd, srq, (size+63)&^63
}

// grow adds buffers and posts them.
func (s *slabs) grow(n int) error {
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
		if _, err := s.srq.PostRecv(s.wrs[s.count-s.each:]); err != nil {
			return fmt.Errorf("%d receives: %w", s.count, err)
		}
	}
	return nil
}

func (s *slabs) buf(i int) []byte {
	at := i % s.each * s.size
	return s.list[i/s.each].Bytes()[at : at+s.size]
}

func (s *slabs) wr(i int) verbs.RecvWR { return s.wrs[i] }

// pool are the send buffers.
type pool struct {
	mr    verbs.MR
	size  int // of a buffer
	count int
	free  []int
}

func (p *pool) init(pd verbs.PD, n, size int) (err error) {
	p.size, p.count = (size+63)&^63, n
	p.mr, err = pd.RegMR(make([]byte, n*p.size), verbs.AccessLocalWrite)
	for i := n - 1; i >= 0; i-- {
		p.free = append(p.free, i)
	}
	return err
}

func (p *pool) left() int { return len(p.free) }

// flags are those of a message from a buffer, which comes back with the completion:
// soon only if they are getting few, since an acknowledgement costs both ends a turn.
// That one was lost is noticed later then, after reliability.LazyProbe.
func (p *pool) flags() verbs.SendFlags {
	if 2*p.left() < p.count {
		return verbs.SendSignaled
	}
	return verbs.SendSignaled | verbs.SendUnhurried
}

// take returns a free buffer, -1 if there is none.
func (p *pool) take() int {
	n := len(p.free) - 1
	if n < 0 {
		return -1
	}
	i := p.free[n]
	p.free = p.free[:n]
	return i
}

func (p *pool) put(i int)              { p.free = append(p.free, i) }
func (p *pool) buf(i int) []byte       { return p.mr.Bytes()[i*p.size : (i+1)*p.size] }
func (p *pool) sge(i, n int) verbs.SGE { return p.mr.SGE(i*p.size, n) }

// moves are the transfers under way.
type moves struct {
	list []moving
	free []int
}

func (m *moves) add(v moving) int {
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

func (m *moves) remove(i int) moving {
	v := m.list[i]
	m.list[i] = moving{}
	m.free = append(m.free, i)
	return v
}

// cache keeps registrations of the program's memory, the last used last, and
// gives them up late: programs send from the same memory again and again. What
// is registered stays alive, so no other memory can take its address.
type cache struct {
	pd               verbs.PD
	list             []*region
	bytes            int
	registered, hits uint64
}

// Bounds of what is kept without being in use.
const (
	cacheRegions = 64
	cacheBytes   = 256 << 20
)

type region struct {
	mr   verbs.MR
	base uintptr
	used int
}

func (r *region) sge(b []byte) verbs.SGE {
	return r.mr.SGE(int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))-r.base), len(b))
}

// find returns a registration that b lies in, nil if there is none.
func (c *cache) find(b []byte) *region {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for i := len(c.list) - 1; i >= 0; i-- {
		if r := c.list[i]; r.base <= at && at-r.base+uintptr(len(b)) <= uintptr(r.mr.Len()) {
			copy(c.list[i:], c.list[i+1:])
			c.list[len(c.list)-1] = r
			r.used++
			c.hits++
			return r
		}
	}
	return nil
}

// get returns a registration that b lies in, a new one if there is none.
func (c *cache) get(b []byte) (*region, error) {
	if r := c.find(b); r != nil {
		return r, nil
	}
	mr, err := c.pd.RegMR(b, access)
	if err != nil {
		return nil, fmt.Errorf("registering %d bytes: %w", len(b), err)
	}
	r := &region{mr: mr, base: uintptr(unsafe.Pointer(unsafe.SliceData(b))), used: 1}
	c.list = append(c.list, r)
	c.bytes += len(b)
	c.registered++
	c.trim()
	return r, nil
}

// put ends a use.
func (c *cache) put(r *region) {
	r.used--
	c.trim()
}

func (c *cache) trim() {
	for i := 0; i < len(c.list) && (len(c.list) > cacheRegions || c.bytes > cacheBytes); {
		r := c.list[i]
		if r.used > 0 {
			i++
			continue
		}
		c.bytes -= r.mr.Len()
		_ = r.mr.Dereg() // nothing else refers to it
		c.list = append(c.list[:i], c.list[i+1:]...)
	}
}
