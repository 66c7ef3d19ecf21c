package rnic

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire"
)

// A flowCache caches the ICRC state of recent peers, by a hash of their
// address.
type flowCache struct {
	local   netip.AddrPort // canonical
	entries [64]flow
}

func (c *flowCache) get(src netip.AddrPort) *flow {
	a := src.Addr().As16()
	h := uint32(src.Port())*31 + uint32(a[15]) + uint32(a[14])*7 + uint32(a[13])*13
	f := &c.entries[(h^h>>6)%uint32(len(c.entries))]
	if f.src != src {
		*f = flow{src: src, sealer: wire.NewICRC(src, c.local)}
	}
	return f
}

// A flow is the ICRC state of packets from one address.
//
// A socket does not show the IPv4 identification, so the ICRC check solves for
// it, and one damaged packet in 65,536 passes. Adapters like ours, and hardware
// that always writes 0, choose it predictably. From such a peer an unexpected
// identification means damage; then one damaged packet in many millions passes.
type flow struct {
	src       netip.AddrPort
	sealer    wire.ICRC
	predicted uint8 // consecutive packets with an expected identification, up to minPredicted
	doubted   bool  // the last packet was dropped for an unexpected one
}

const (
	// minPredicted is the number of consecutive expected identifications that
	// make a peer predictable.
	minPredicted = 32
	// expectedIDs are the identifications of a GSO group, from 0. Receive
	// offload may split and join groups, so each of them is expected anywhere.
	expectedIDs = 64
)

// checkICRC checks the ICRC of packet i of a datagram. A predictable peer with
// two unexpected identifications in a row is taken for a different one at the
// same address.
func (f *flow) checkICRC(raw []byte, i uint16) wire.ICRCResult {
	r, id := f.sealer.Check(raw, i)
	switch {
	case r == wire.ICRCBad:
	case r == wire.ICRCExact || id < expectedIDs:
		f.predicted, f.doubted = min(f.predicted+1, minPredicted), false
	case f.predicted == minPredicted && !f.doubted:
		f.doubted = true
		return wire.ICRCBad
	default:
		f.predicted, f.doubted = 0, false
	}
	return r
}
