package memory

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/internal/hostaddr"
)

// A portTable is the address table of a network.
type portTable map[netip.AddrPort]*Conn

// firstEphemeralPort is the first port number assigned for port 0.
const firstEphemeralPort = 49152

// attach adds a new Conn under its address.
func (p portTable) attach(f fabric, pool *pool, addr netip.AddrPort, o Options) (*Conn, error) {
	addr = hostaddr.CanonicalPort(addr)
	if err := o.validate(addr); err != nil {
		return nil, err
	}
	if addr.Port() == 0 {
		free, err := p.freePort(addr.Addr())
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

// freePort returns the address with its lowest unused ephemeral port.
func (p portTable) freePort(ip netip.Addr) (netip.AddrPort, error) {
	for port := firstEphemeralPort; port < 1<<16; port++ {
		if addr := netip.AddrPortFrom(ip, uint16(port)); p[addr] == nil {
			return addr, nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("memory: %v has no free port left", ip)
}
