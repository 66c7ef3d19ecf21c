package rdm

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// Region is memory that operations may use: at this end, and as far as its access
// flags permit, from peers.
type Region struct {
	e      *Endpoint
	mr     verbs.MR
	closed bool
	busy   int // operations of ours that use it
}

// Remote is memory of a peer: an address and the key of its region, as values that
// may be sent to whom they are meant for.
type Remote struct {
	Addr uint64
	RKey uint32
}

// Add is n bytes further.
func (r Remote) Add(n int) Remote { return Remote{r.Addr + uint64(n), r.RKey} }

// Span is a piece of a region at this end.
type Span struct {
	r      *Region
	off, n int
}

// regionTable is the regions of an endpoint by their key.
type regionTable struct {
	regions map[uint32]*Region
}

// Register registers memory, which is not copied and stays in place until
// Region.Close. With AccessLocalWrite reads may go there; with AccessRemoteRead,
// AccessRemoteWrite and AccessRemoteAtomic peers may do that.
func (e *Endpoint) Register(buf []byte, access verbs.AccessFlags) (*Region, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return nil, e.err
	}
	mr, err := e.port.PD.RegMR(buf, access)
	if err != nil {
		return nil, err
	}
	r := &Region{e: e, mr: mr}
	if e.memory.regions == nil {
		e.memory.regions = map[uint32]*Region{}
	}
	e.memory.regions[mr.LKey()] = r
	if access&verbs.AccessRemote != 0 && e.served == nil && e.o.Service != ServeCalls {
		e.served = make(chan struct{})
		go e.runService(e.port.CQ, e.o.Service)
	}
	return r, nil
}

// Bytes is the memory itself.
func (r *Region) Bytes() []byte { return r.mr.Bytes() }

// Remote is what peers have to know to use the region from an offset on.
func (r *Region) Remote(off int) Remote { return Remote{r.mr.Addr(), r.mr.RKey()}.Add(off) }

// At is n bytes of the region from an offset on, for operations of this end. They
// check the range.
func (r *Region) At(off, n int) Span { return Span{r, off, n} }

// LoadUint64 reads the 8 bytes at an offset, which with their address are multiples
// of 8, in host byte order: it sees what a peer has written, as verbs.MR has it.
func (r *Region) LoadUint64(off int) uint64 { return r.mr.LoadUint64(off) }

// Close deregisters the region: peers that use it get ErrKey or ErrRemote. It is
// ErrInUse while an operation of this end uses it.
func (r *Region) Close() error {
	e := r.e
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case r.closed:
		return nil
	case r.busy > 0:
		return fmt.Errorf("close region: %w", ErrInUse)
	}
	r.closed = true
	delete(e.memory.regions, r.mr.LKey())
	return r.mr.Dereg()
}

// permits reports whether the span lies in a region of e that permits access.
func (s Span) permits(e *Endpoint, access verbs.AccessFlags) bool {
	return s.r != nil && s.r.e == e && !s.r.closed && s.off >= 0 && s.n >= 0 && s.off <= s.r.mr.Len() && s.n <= s.r.mr.Len()-s.off &&
		s.r.mr.Access()&access == access
}

// bytes is the span's memory.
func (s Span) bytes() []byte { return s.r.mr.Bytes()[s.off : s.off+s.n] }

// lookup finds what a peer asks for: n bytes at an address of the region with a key.
func (m *regionTable) lookup(key uint32, addr, n uint64, need verbs.AccessFlags) ([]byte, status) {
	r := m.regions[key]
	if r == nil || r.mr.RKey() != key || key == 0 {
		return nil, statusKey
	}
	off, size := addr-r.mr.Addr(), uint64(r.mr.Len())
	switch {
	case off > size || n > size-off:
		return nil, statusBounds
	case r.mr.Access()&need == 0:
		return nil, statusAccess
	}
	return r.mr.Bytes()[off : off+n], statusOK
}

// closeAll deregisters all.
func (m *regionTable) closeAll() {
	for _, r := range m.regions {
		r.closed = true
		_ = r.mr.Dereg() // ours, and without windows
	}
	m.regions = nil
}
