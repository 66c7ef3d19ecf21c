package memory

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/wire"
)

// ports is the address table of a network.
type ports map[netip.AddrPort]*Conn

// ephemeral is the first port number given to those who ask for port 0.
const ephemeral = 49152

// attach enters a new Conn under its address.
func (p ports) attach(f fabric, pool *pool, addr netip.AddrPort, o Options) (*Conn, error) {
	addr = wire.CanonicalAddrPort(addr)
	if err := o.resolve(addr); err != nil {
		return nil, err
	}
	if addr.Port() == 0 {
		free, err := p.free(addr.Addr())
		if err != nil {
			return nil, err
		}
		addr = free
	}
	if p[addr] != nil {
		return nil, fmt.Errorf("memory: %v is in use; attach to another address or port, or close the link that has it", addr)
	}
	c := newConn(f, pool, addr, o)
	p[addr] = c
	return c, nil
}

// free returns the address with its lowest ephemeral port that nobody has.
func (p ports) free(ip netip.Addr) (netip.AddrPort, error) {
	for port := ephemeral; port < 1<<16; port++ {
		if addr := netip.AddrPortFrom(ip, uint16(port)); p[addr] == nil {
			return addr, nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("memory: %v has no free port left", ip)
}
