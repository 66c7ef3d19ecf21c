package sdp

import (
	"github.com/softrnic/softrnic/internal/pages"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// region is registered memory of a connection. It is not the heap's if it is large: what
// thousands of connections might use would let garbage grow as much.
type region struct {
	verbs.MR
	free func()
}

// region makes one of n bytes, all 0.
func (s *Stack) region(n int, access verbs.AccessFlags) (region, error) {
	mem, free := pages.Alloc(n)
	mr, err := s.pd.RegMR(mem, access)
	if err != nil {
		free()
		return region{}, err
	}
	return region{mr, free}, nil
}

// drop gives a region back. Nothing may touch its memory any more, and the adapter does not.
func (r region) drop() {
	if r.Dereg() == nil {
		r.free()
	}
}

// memory is the region as the core knows it.
func (r region) memory() protocol.Memory {
	return protocol.Memory{Bytes: r.Bytes(), Addr: r.Addr(), LKey: r.LKey(), RKey: r.RKey()}
}

// Conn.regions, in the order in which they are made.
const (
	sendRegion = iota
	slotsRegion
	ringRegion
)

// register makes the next region of a connection.
func (c *Conn) register(n int, access verbs.AccessFlags) (protocol.Memory, error) {
	r, err := c.stack.region(n, access)
	if err != nil {
		return protocol.Memory{}, err
	}
	c.regions = append(c.regions, r)
	return r.memory(), nil
}

// replace puts a region in the place of one that is in use for a while yet.
func (c *Conn) replace(i int, r region) { c.old, c.regions[i] = c.regions[i], r }
