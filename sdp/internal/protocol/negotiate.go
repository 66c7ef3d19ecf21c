package protocol

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// designs are the flow controls as Hello and HelloAck name them.
var designs = map[flow.Design]bsdh.Design{flow.Credit: bsdh.DesignBrief, flow.RDMA: bsdh.DesignRDMA, flow.NIC: bsdh.DesignNIC}

func (c *Config) extension() bsdh.Extension {
	switch {
	case c.plain:
		return bsdh.Extension{}
	case c.Design == flow.Credit:
		return bsdh.Extension{Design: designs[c.Design]}
	}
	return bsdh.Extension{
		Design: designs[c.Design], Buffers: uint16(c.Buffers), Ring: uint32(len(c.Ring.Bytes)), Window: uint32(c.Window),
		RKey: c.Ring.RKey, Addr: c.Ring.Addr,
	}
}

// Hello is what asks for a connection of this configuration.
func (c *Config) Hello(local netip.AddrPort, remote netip.Addr) *bsdh.Hello {
	return &bsdh.Hello{
		Version: bsdh.Version, MaxAdverts: c.MaxAdverts, Bufs: uint16(c.initial()),
		DesRemRcvSz: uint32(c.slotBytes()), LocalRcvSz: uint32(c.slotBytes()),
		LocalPort: local.Port(), Src: local.Addr(), Dst: remote,
		Extension: c.extension(),
	}
}

// Heed is the configuration that answers a Hello: with its design, if that can
// be, and windows of ours.
func (c Config) Heed(h *bsdh.Hello) (Config, error) {
	if h.Version>>4 != bsdh.Version>>4 {
		return c, fmt.Errorf("%w: Hello has version %d.%d, ours is %d.%d", ErrProtocol, h.Version>>4, h.Version&15, bsdh.Version>>4, bsdh.Version&15)
	}
	if h.MaxAdverts == 0 {
		return c, fmt.Errorf("%w: Hello has no MaxAdverts", ErrProtocol)
	}
	c.plain = !h.Extension.Present()
	return c.With(designOf(h.Extension)), nil
}

// designOf is the flow control that an extension asks for.
func designOf(e bsdh.Extension) flow.Design {
	switch e.Design {
	case bsdh.DesignRDMA:
		return flow.RDMA
	case bsdh.DesignNIC:
		return flow.NIC
	}
	return flow.Credit
}

// PeerOf is the peer that sent a Hello.
func PeerOf(h *bsdh.Hello) (Peer, error) {
	return peer(Peer{Dialed: true, Bufs: h.Bufs, BufferBytes: h.LocalRcvSz, MaxAdverts: h.MaxAdverts}, h.Extension)
}

// HelloAck accepts the connection.
func (c *Config) HelloAck() *bsdh.HelloAck {
	return &bsdh.HelloAck{
		Version: bsdh.Version, MaxAdverts: c.MaxAdverts, ActRcvSz: uint32(c.slotBytes()), Bufs: uint16(c.initial()),
		Extension: c.extension(),
	}
}

// PeerOfAck is the peer that sent a HelloAck.
func (c *Config) PeerOfAck(h *bsdh.HelloAck) (Peer, error) {
	if h.MaxAdverts == 0 {
		return Peer{}, fmt.Errorf("%w: HelloAck has no MaxAdverts", ErrProtocol)
	}
	if h.Extension.Present() && h.Extension.Design != designs[c.Design] {
		return Peer{}, fmt.Errorf("%w: HelloAck has flow control %v, and %v was asked for", ErrProtocol, h.Extension.Design, c.Design)
	}
	return peer(Peer{Bufs: h.Bufs, BufferBytes: h.ActRcvSz, MaxAdverts: h.MaxAdverts}, h.Extension)
}

// peer adds the extension, and looks whether one can work with it all.
func peer(p Peer, e bsdh.Extension) (Peer, error) {
	p.Ring, p.Window, p.Addr, p.RKey = e.Ring, e.Window, e.Addr, e.RKey
	p.Design, p.Brief = designOf(e), e.Design == bsdh.DesignBrief
	if p.Design != flow.Credit {
		p.Buffer = uint64(e.Buffers) * uint64(p.BufferBytes-min(p.BufferBytes, bsdh.HeaderBytes))
	}
	switch {
	case p.Design == flow.Credit && p.BufferBytes < bsdh.HeaderBytes+smallSlot:
		return p, fmt.Errorf("%w: receive buffers of %d bytes", ErrProtocol, p.BufferBytes)
	case p.Design != flow.Credit && (p.Ring == 0 || p.Ring >= bsdh.MaxRing):
		return p, fmt.Errorf("%w: a ring of %d bytes", ErrProtocol, p.Ring)
	case p.Design == flow.NIC && (p.Window == 0 || p.Window > p.Ring):
		return p, fmt.Errorf("%w: a window of %d bytes in a ring of %d", ErrProtocol, p.Window, p.Ring)
	case p.Bufs == 0:
		return p, fmt.Errorf("%w: no receives", ErrProtocol)
	}
	return p, nil
}
