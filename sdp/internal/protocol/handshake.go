package protocol

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
)

// wireFlowControls are the encodings of the flow control modes in Hello and HelloAck.
var wireFlowControls = map[flow.Control]bsdh.FlowControl{flow.Credit: bsdh.FlowControlShortHeader, flow.RDMA: bsdh.FlowControlRDMA, flow.NIC: bsdh.FlowControlNIC}

func (c *Config) extension() bsdh.Extension {
	switch {
	case c.noExtension:
		return bsdh.Extension{}
	case c.FlowControl == flow.Credit:
		return bsdh.Extension{FlowControl: wireFlowControls[c.FlowControl]}
	}
	return bsdh.Extension{
		FlowControl: wireFlowControls[c.FlowControl], Buffers: uint16(c.Buffers), Ring: uint32(len(c.Ring.Bytes)), Window: uint32(c.Window),
		RKey: c.Ring.RKey, Addr: c.Ring.Addr,
	}
}

// Hello returns the Hello that requests a connection with this configuration.
func (c *Config) Hello(local netip.AddrPort, remote netip.Addr) *bsdh.Hello {
	return &bsdh.Hello{
		Version: bsdh.Version, MaxAdverts: c.MaxAdverts, Bufs: uint16(c.initialReceives()),
		DesRemRcvSz: uint32(c.slotBytes()), LocalRcvSz: uint32(c.slotBytes()),
		LocalPort: local.Port(), Src: local.Addr(), Dst: remote,
		Extension: c.extension(),
	}
}

// Negotiate returns the configuration for the reply to a Hello: the peer's flow control mode if
// it is supported, with local windows.
func (c Config) Negotiate(h *bsdh.Hello) (Config, error) {
	if h.Version>>4 != bsdh.Version>>4 {
		return c, fmt.Errorf("%w: Hello version %d.%d, want %d.%d", ErrProtocol, h.Version>>4, h.Version&15, bsdh.Version>>4, bsdh.Version&15)
	}
	if h.MaxAdverts == 0 {
		return c, fmt.Errorf("%w: Hello: MaxAdverts 0", ErrProtocol)
	}
	c.noExtension = !h.Extension.Present()
	return c.WithControl(controlOf(h.Extension)), nil
}

// controlOf returns the flow control mode that an extension requests.
func controlOf(e bsdh.Extension) flow.Control {
	switch e.FlowControl {
	case bsdh.FlowControlRDMA:
		return flow.RDMA
	case bsdh.FlowControlNIC:
		return flow.NIC
	}
	return flow.Credit
}

// PeerFromHello returns the parameters of the peer that sent a Hello.
func PeerFromHello(h *bsdh.Hello) (Peer, error) {
	return newPeer(Peer{Dialed: true, Bufs: h.Bufs, BufferBytes: h.LocalRcvSz, MaxAdverts: h.MaxAdverts}, h.Extension)
}

// HelloAck returns the HelloAck that accepts a connection with this configuration.
func (c *Config) HelloAck() *bsdh.HelloAck {
	return &bsdh.HelloAck{
		Version: bsdh.Version, MaxAdverts: c.MaxAdverts, ActRcvSz: uint32(c.slotBytes()), Bufs: uint16(c.initialReceives()),
		Extension: c.extension(),
	}
}

// PeerFromHelloAck returns the parameters of the peer that sent a HelloAck.
func (c *Config) PeerFromHelloAck(h *bsdh.HelloAck) (Peer, error) {
	if h.MaxAdverts == 0 {
		return Peer{}, fmt.Errorf("%w: HelloAck: MaxAdverts 0", ErrProtocol)
	}
	if h.Extension.Present() && h.Extension.FlowControl != wireFlowControls[c.FlowControl] {
		return Peer{}, fmt.Errorf("%w: HelloAck: flow control %v, want %v", ErrProtocol, h.Extension.FlowControl, c.FlowControl)
	}
	return newPeer(Peer{Bufs: h.Bufs, BufferBytes: h.ActRcvSz, MaxAdverts: h.MaxAdverts}, h.Extension)
}

// newPeer adds the extension's fields to p and validates them.
func newPeer(p Peer, e bsdh.Extension) (Peer, error) {
	p.Ring, p.Window, p.Addr, p.RKey = e.Ring, e.Window, e.Addr, e.RKey
	p.FlowControl, p.ShortHeaders = controlOf(e), e.FlowControl == bsdh.FlowControlShortHeader
	if p.FlowControl != flow.Credit {
		p.Buffer = uint64(e.Buffers) * uint64(p.BufferBytes-min(p.BufferBytes, bsdh.HeaderBytes))
	}
	switch {
	case p.FlowControl == flow.Credit && p.BufferBytes < bsdh.HeaderBytes+smallSlotBytes:
		return p, fmt.Errorf("%w: receive buffers of %d bytes", ErrProtocol, p.BufferBytes)
	case p.FlowControl != flow.Credit && (p.Ring == 0 || p.Ring >= bsdh.MaxRing):
		return p, fmt.Errorf("%w: ring of %d bytes", ErrProtocol, p.Ring)
	case p.FlowControl == flow.NIC && (p.Window == 0 || p.Window > p.Ring):
		return p, fmt.Errorf("%w: window of %d bytes exceeds the ring of %d", ErrProtocol, p.Window, p.Ring)
	case p.Bufs == 0:
		return p, fmt.Errorf("%w: no receives", ErrProtocol)
	}
	return p, nil
}

// New returns a Core with its initial receives in Receives. Call [Core.Start] before any other
// method but Receives and ClearPosted.
func New(cfg Config) *Core {
	c := &Core{cfg: cfg}
	c.controls.depth = ControlQueue
	c.slots.init(&cfg)
	c.prepareReceives(cfg.initialReceives())
	return c
}

// Start begins the data transfer with the negotiated parameters.
func (c *Core) Start(p Peer) {
	c.peer, c.started = p, true
	c.credits.Start(p.Bufs)
	c.mode = newModes(p.FlowControl)
	cfg := &c.cfg
	c.ring.size, c.ring.maxSize = len(cfg.Ring.Bytes)-cfg.RingSlack(), cfg.ringCapacity()
	switch p.FlowControl {
	case flow.Credit:
		c.slots.dropSmall()
		c.bufSize.start(cfg, &p)
		c.sender = flow.NewCreditSender(cfg.Send.Bytes, cfg.slotBytes(), bsdh.HeaderBytes, c.PeerBufferBytes(), cfg.Queue, &c.credits)
		c.receiver = flow.NewCreditReceiver(cfg.largeReceives())
	case flow.RDMA:
		c.sender = flow.NewRDMASender(cfg.Send.Bytes[:cfg.ringCapacity()], cfg.initialRing(), int(p.Ring), cfg.Queue, &c.credits)
		c.receiver = flow.NewRDMAReceiver(cfg.Ring.Bytes, cfg.Receives)
	case flow.NIC:
		c.sender = flow.NewNICSender(cfg.Send.Bytes[:cfg.ringCapacity()], cfg.initialRing(), int(p.Ring), int(p.Window), cfg.Queue)
		c.receiver = flow.NewNICReceiver(cfg.Ring.Bytes, cfg.Window, cfg.Receives)
	}
	c.advertised.count = c.slots.posted // advertised by Hello or HelloAck
	c.refillReceives()
	c.scheduleCreditUpdate()
	c.buildRequests()
}
