// Package tally counts the packets, retransmissions, gaps and NAKs of each direction in a capture
// of RoCE v2 traffic. The counters of both adapters must agree with it.
//
//	t := tally.New()
//	for _, frame := range frames {
//		t.Add(frame) // Ethernet, IP, UDP
//	}
//	t.From(addr).Packets
//
// It is independent of the adapters' implementation: it follows the PSNs of each queue pair by
// the rules for the number of PSNs that a request consumes.
package tally

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/softrnic/softrnic/wire"
)

// Counts are the packets that one address sent.
type Counts struct {
	Packets    int
	Opcodes    map[wire.Opcode]int
	Duplicates int // requests that the peer had already accepted
	Gaps       int // times that a request was missing before others
	RNRNaks    int // receiver not ready
	SeqNaks    int // PSN sequence error
	OtherNaks  int // fatal NAKs
	BadICRC    int
	CNPs       int
}

// A Tally counts packets for one path MTU.
type Tally struct {
	mtu    int
	byAddr map[netip.Addr]*Counts
	flows  map[flow]*progress
}

// A flow is the requests of one queue pair to another.
type flow struct {
	from, to netip.Addr
	qpn      uint32 // destination queue pair number
}

// progress is the state of a flow's destination.
type progress struct {
	next wire.PSN // expected PSN
	gap  bool     // a missing packet has been counted and has not arrived

	// repeats is the number of retransmissions of the last request before its reply: duplicates,
	// unless the reply is an RNR NAK.
	repeats int
}

// New returns an empty Tally for traffic with a path MTU in bytes.
func New(mtu int) *Tally {
	return &Tally{mtu: mtu, byAddr: make(map[netip.Addr]*Counts), flows: make(map[flow]*progress)}
}

// StartFlow sets the PSN of the first request from an address to a queue pair. Without it the
// first captured request counts as the first, however many were lost before.
func (t *Tally) StartFlow(from, to netip.Addr, qpn uint32, psn wire.PSN) {
	t.flows[flow{from, to, qpn}] = &progress{next: psn}
}

// From returns the counts of an address.
func (t *Tally) From(a netip.Addr) *Counts {
	c := t.byAddr[a]
	if c == nil {
		c = &Counts{Opcodes: make(map[wire.Opcode]int)}
		t.byAddr[a] = c
	}
	return c
}

// Addrs returns the addresses that sent packets, in order.
func (t *Tally) Addrs() []netip.Addr {
	return slices.SortedFunc(maps.Keys(t.byAddr), netip.Addr.Compare)
}

// ErrNotRoCE reports a frame that is not a RoCE v2 packet and is not counted.
var ErrNotRoCE = errors.New("tally: not a RoCE v2 packet")

// Add counts a frame, which begins with the Ethernet header.
func (t *Tally) Add(frame []byte) error {
	p := gopacket.NewPacket(frame, layers.LinkTypeEthernet, gopacket.NoCopy)
	udp, ok := p.TransportLayer().(*layers.UDP)
	if !ok || udp.DstPort != 4791 {
		return ErrNotRoCE
	}
	var src, dst netip.Addr
	var id uint16
	switch ip := p.NetworkLayer().(type) {
	case *layers.IPv4:
		src, _ = netip.AddrFromSlice(ip.SrcIP)
		dst, _ = netip.AddrFromSlice(ip.DstIP)
		id = ip.Id
	case *layers.IPv6:
		src, _ = netip.AddrFromSlice(ip.SrcIP)
		dst, _ = netip.AddrFromSlice(ip.DstIP)
	}
	c := t.From(src)
	c.Packets++
	var pkt wire.Packet
	if drop := pkt.Parse(udp.Payload); drop != wire.DropNone {
		return fmt.Errorf("tally: a packet of %v: %s", src, drop.Description())
	}
	s := wire.NewICRC(netip.AddrPortFrom(src, uint16(udp.SrcPort)), netip.AddrPortFrom(dst, uint16(udp.DstPort)))
	if result, _ := s.Check(pkt.Raw, id); result != wire.ICRCExact {
		c.BadICRC++
		return nil
	}
	c.Opcodes[pkt.BTH.Opcode]++
	switch {
	case pkt.BTH.Opcode == wire.CNP:
		c.CNPs++
	case pkt.Info.Class == wire.ClassRC && pkt.Info.Request:
		t.handleRequest(c, flow{src, dst, pkt.BTH.DestQPN}, &pkt)
	case pkt.BTH.Opcode == wire.RCAck:
		t.handleAck(c, src, dst, &pkt)
	}
	return nil
}

// handleRequest updates a flow with a request packet of RC.
func (t *Tally) handleRequest(c *Counts, f flow, p *wire.Packet) {
	at := t.flows[f]
	if at == nil {
		at = &progress{next: p.BTH.PSN}
		t.flows[f] = at
	}
	switch d := p.BTH.PSN.Sub(at.next); {
	case d < 0:
		c.Duplicates++
		if d == -1 {
			at.repeats++
		}
	case d > 0:
		if !at.gap {
			c.Gaps++
		}
		at.gap = true
	default:
		at.gap, at.repeats = false, 0
		at.next = at.next.Add(t.psnCount(p))
	}
}

// psnCount returns the number of PSNs of a request packet; a READ takes those of its responses.
func (t *Tally) psnCount(p *wire.Packet) int {
	if p.BTH.Opcode != wire.RCReadRequest {
		return 1
	}
	return max(1, (int(p.RETH().Length)+t.mtu-1)/t.mtu)
}

// handleAck counts NAKs. After an RNR NAK the destination expects the request again; it belongs
// to the flow whose next PSN follows the NAK's.
func (t *Tally) handleAck(c *Counts, src, dst netip.Addr, p *wire.Packet) {
	switch s := p.AETH().Syndrome; s.Kind() {
	case wire.KindRNR:
		c.RNRNaks++
		for f, at := range t.flows {
			if f.from == dst && f.to == src && at.next == p.BTH.PSN.Add(1) {
				at.next = p.BTH.PSN
				t.From(dst).Duplicates -= at.repeats
				at.repeats = 0
			}
		}
	case wire.KindAck:
		for f, at := range t.flows { // a retransmitted request has found a receive
			if f.from == dst && f.to == src && at.next == p.BTH.PSN {
				at.next = p.BTH.PSN.Add(1)
			}
		}
	case wire.KindNAK:
		if s == wire.NakPSNSequence {
			c.SeqNaks++
		} else {
			c.OtherNaks++
		}
	}
}
