package rnic

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire"
)

// sealerCache keeps the state that checks the ICRC of packets from a peer:
// the last peers that were heard, by a hash of their address.
type sealerCache struct {
	local   netip.AddrPort
	entries [64]struct {
		src    netip.AddrPort
		sealer wire.Sealer
	}
}

func (c *sealerCache) get(src netip.AddrPort) *wire.Sealer {
	a := src.Addr().As16()
	h := uint32(src.Port())*31 + uint32(a[15]) + uint32(a[14])*7 + uint32(a[13])*13
	e := &c.entries[(h^h>>6)%uint32(len(c.entries))]
	if e.src != src {
		e.src, e.sealer = src, wire.NewSealer(src, c.local)
	}
	return &e.sealer
}
