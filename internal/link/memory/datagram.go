package memory

import (
	"net/netip"
	"sync"

	"github.com/softrnic/softrnic/wire"
)

// A datagram is one packet, or a group that was sent as one.
type datagram struct {
	src  netip.AddrPort
	tos  uint8
	hops uint8
	flow uint32
	id   uint16 // IPv4 identification of the first packet
	seg  int
	buf  []byte // the datagram's own memory
}

// packetCount returns the number of packets in the datagram.
func (d *datagram) packetCount() int { return (len(d.buf) + d.seg - 1) / d.seg }

// headerLen returns the number of bytes of the IP and UDP headers of a packet.
func headerLen(ip netip.Addr) int {
	if ip.Is4() {
		return wire.IPv4Len + wire.UDPLen
	}
	return wire.IPv6Len + wire.UDPLen
}

// A pool recycles the memory of datagrams.
type pool struct {
	mu   sync.Mutex
	free []*datagram
}

// get returns a datagram that holds a copy of buf.
func (p *pool) get(buf []byte) *datagram {
	p.mu.Lock()
	var d *datagram
	if last := len(p.free) - 1; last >= 0 {
		d, p.free = p.free[last], p.free[:last]
	}
	p.mu.Unlock()
	if d == nil {
		d = new(datagram)
	}
	d.buf = append(d.buf[:0], buf...)
	return d
}

func (p *pool) put(d *datagram) {
	p.mu.Lock()
	p.free = append(p.free, d)
	p.mu.Unlock()
}
