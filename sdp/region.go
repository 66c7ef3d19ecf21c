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

// newRegion makes one of n bytes, all 0.
func (s *Stack) newRegion(n int, access verbs.AccessFlags) (region, error) {
	mem, free := pages.Alloc(n)
	mr, err := s.pd.RegMR(mem, access)
	if err != nil {
		free()
		return region{}, err
	}
	return region{mr, free}, nil
}

// deregister gives a region back. Nothing may touch its memory any more, and the adapter does not.
func (r region) deregister() {
	if r.Dereg() == nil {
		r.free()
	}
}

// protocolMemory is the region as the core knows it.
func (r region) protocolMemory() protocol.Memory {
	return protocol.Memory{Bytes: r.Bytes(), Addr: r.Addr(), LKey: r.LKey(), RKey: r.RKey()}
}

// Conn.regions, in the order in which they are made.
const (
	sendRegion = iota
	slotsRegion
	ringRegion
)

// registerRegion makes the next region of a connection.
func (c *Conn) registerRegion(n int, access verbs.AccessFlags) (protocol.Memory, error) {
	r, err := c.stack.newRegion(n, access)
	if err != nil {
		return protocol.Memory{}, err
	}
	c.regions = append(c.regions, r)
	return r.protocolMemory(), nil
}

// replaceRegion puts a region in the place of one that is in use for a while yet.
func (c *Conn) replaceRegion(i int, r region) { c.oldRegion, c.regions[i] = c.regions[i], r }
