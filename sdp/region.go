package sdp

import (
	"github.com/softrnic/softrnic/internal/pages"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// A region is registered memory of a connection. Large regions are allocated outside of the heap,
// because thousands of mostly unused buffers would let the garbage grow by their size before the
// next collection.
type region struct {
	verbs.MR
	free func()
}

// newRegion returns a zeroed region of n bytes.
func (s *Stack) newRegion(n int, access verbs.AccessFlags) (region, error) {
	mem, free := pages.Alloc(n)
	mr, err := s.pd.RegMR(mem, access)
	if err != nil {
		free()
		return region{}, err
	}
	return region{mr, free}, nil
}

// deregister frees a region. No other user of its memory may remain.
func (r region) deregister() {
	if r.Close() == nil {
		r.free()
	}
}

// protocolMemory returns the region in the form that the core uses.
func (r region) protocolMemory() protocol.Memory {
	return protocol.Memory{Bytes: r.Bytes(), Addr: r.Addr(), LKey: r.LKey(), RKey: r.RKey()}
}

// Indexes of Conn.regions, in the order of allocation.
const (
	sendRegion = iota
	slotsRegion
	ringRegion
)

// registerRegion allocates the next region of a connection.
func (c *Conn) registerRegion(n int, access verbs.AccessFlags) (protocol.Memory, error) {
	r, err := c.stack.newRegion(n, access)
	if err != nil {
		return protocol.Memory{}, err
	}
	c.regions = append(c.regions, r)
	return r.protocolMemory(), nil
}

// replaceRegion replaces region i and keeps the former one in oldRegion until it is unused.
func (c *Conn) replaceRegion(i int, r region) { c.oldRegion, c.regions[i] = c.regions[i], r }
