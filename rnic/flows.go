package rnic

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire"
)

// flowCache keeps what checks the ICRC of packets from a peer: the last peers
// that were heard, by a hash of their address.
type flowCache struct {
	local   netip.AddrPort // canonical, as the sources are
	entries [64]flow
}

func (c *flowCache) get(src netip.AddrPort) *flow {
	a := src.Addr().As16()
	h := uint32(src.Port())*31 + uint32(a[15]) + uint32(a[14])*7 + uint32(a[13])*13
	f := &c.entries[(h^h>>6)%uint32(len(c.entries))]
	if f.src != src {
		*f = flow{src: src, sealer: wire.NewSealer(src, c.local)}
	}
	return f
}

// flow is what is known of the packets from one address.
//
// A socket does not show the IPv4 identification, so the check of the ICRC
// solves for it, and one damaged packet in 65536 passes. Adapters like ours,
// and hardware that always writes 0, choose it in a way that can be told in
// advance. Of such a peer an identification that it would not have chosen means
// damage; one in many millions passes then.
type flow struct {
	src       netip.AddrPort
	sealer    wire.Sealer
	predicted uint8 // packets in a row whose identification was expected, up to steady
	doubted   bool  // the last packet's was not, and was dropped for it
}

const (
	// minPredicted is how many packets in a row make a peer one that can be
	// predicted.
	minPredicted = 32
	// expectedIDs are the identifications of a GSO group, from 0. Receive
	// offload may split and join groups, so each of them is expected anywhere.
	expectedIDs = 64
)

// checkICRC checks the ICRC of packet i of a datagram. A peer that can be predicted
// and chooses otherwise twice running is another one at the same address.
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
