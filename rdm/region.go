package rdm

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// A Region is registered memory for local operations and, as far as its access
// flags permit, for operations of peers.
type Region struct {
	e      *Endpoint
	mr     verbs.MR
	closed bool
	busy   int // local operations that use it
}

// A Remote is memory of a peer: an address and the key of its region.
type Remote struct {
	Addr uint64
	RKey uint32
}

// Add returns r advanced by n bytes.
func (r Remote) Add(n int) Remote { return Remote{r.Addr + uint64(n), r.RKey} }

// A Span is part of a local region.
type Span struct {
	r      *Region
	off, n int
}

// A regionTable maps keys to regions.
type regionTable struct {
	regions map[uint32]*Region
}

// Register registers memory. It is not copied and must stay in place until
// Region.Close. AccessLocalWrite permits local reads from peers into it.
// AccessRemoteRead, AccessRemoteWrite and AccessRemoteAtomic permit operations
// of peers.
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

// Bytes returns the memory.
func (r *Region) Bytes() []byte { return r.mr.Bytes() }

// Remote returns the address and key with which peers access the region from an
// offset on.
func (r *Region) Remote(off int) Remote { return Remote{r.mr.Addr(), r.mr.RKey()}.Add(off) }

// At returns n bytes of the region from an offset on. Operations check the
// range.
func (r *Region) At(off, n int) Span { return Span{r, off, n} }

// LoadUint64 loads the 8 bytes at an offset, which must be 8-byte aligned in
// memory, in host byte order. It observes writes of peers, as verbs.MR does.
func (r *Region) LoadUint64(off int) uint64 { return r.mr.LoadUint64(off) }

// Close deregisters the region. Later operations of peers fail with ErrKey or
// ErrRemote. Close returns ErrInUse while a local operation uses the region.
func (r *Region) Close() error {
	e := r.e
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case r.closed:
		return nil
	case r.busy > 0:
		return fmt.Errorf("rdm: close region: %w", ErrInUse)
	}
	r.closed = true
	delete(e.memory.regions, r.mr.LKey())
	return r.mr.Close()
}

// permits reports whether the span lies in a region of e with the access flags.
func (s Span) permits(e *Endpoint, access verbs.AccessFlags) bool {
	return s.r != nil && s.r.e == e && !s.r.closed && s.off >= 0 && s.n >= 0 && s.off <= s.r.mr.Len() && s.n <= s.r.mr.Len()-s.off &&
		s.r.mr.Access()&access == access
}

// bytes returns the span's memory.
func (s Span) bytes() []byte { return s.r.mr.Bytes()[s.off : s.off+s.n] }

// lookup returns n bytes at an address of the region with a key, for an
// operation of a peer.
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

// closeAll deregisters all regions.
func (m *regionTable) closeAll() {
	for _, r := range m.regions {
		r.closed = true
		_ = r.mr.Close() // cannot fail: no windows are bound
	}
	m.regions = nil
}
