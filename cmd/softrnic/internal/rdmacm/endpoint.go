package rdmacm

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// RoCEPort is the UDP port at which programs expect a server's adapter.
const RoCEPort = 4791

// Endpoint is an adapter and its manager of connections.
type Endpoint struct {
	Device     verbs.Device
	Manager    *cm.Manager
	ownsDevice bool // by us
}

// OpenClient makes an end that leads to a server; bind is its address, or the zero
// Addr for the one on the way. It must be closed.
func OpenClient(p DeviceSource, server, bind netip.Addr) (*Endpoint, error) {
	if p.Device != nil {
		return p.openEndpoint(netip.AddrPort{}, bind)
	}
	at, err := clientAddr(server, bind)
	if err != nil {
		return nil, err
	}
	return p.openEndpoint(at, netip.Addr{})
}

// OpenServer makes an end at an address of this machine for others to find, or where the
// place opens one for the zero Addr. It must be closed.
func OpenServer(p DeviceSource, own netip.Addr) (*Endpoint, error) {
	at := netip.AddrPort{}
	if own.IsValid() {
		at = netip.AddrPortFrom(own, RoCEPort)
	}
	e, err := p.openEndpoint(at, own)
	if err != nil {
		return nil, err
	}
	if port := e.Manager.Addr().Port(); port != RoCEPort {
		return nil, errors.Join(portError(port), e.Close())
	}
	return e, nil
}

// portError refuses a server's adapter that clients would not find.
func portError(port uint16) error {
	return fmt.Errorf("the device listens on UDP port %d, and RDMA-CM has no word for a server's port: it has to be %d", port, RoCEPort)
}

// clientAddr is where a client's adapter goes. On the server's own address it takes
// another port, which the server learns; and everywhere on the loopback interface, so as
// not to sit where a server, perhaps this one, is to be.
func clientAddr(server, bind netip.Addr) (netip.AddrPort, error) {
	if server.IsUnspecified() || server.IsMulticast() {
		return netip.AddrPort{}, fmt.Errorf("%v is not the address of one server", server)
	}
	own := bind
	if !bind.IsValid() || bind.IsUnspecified() {
		var err error
		if own, err = localAddrTo(server); err != nil {
			return netip.AddrPort{}, err
		}
	}
	if wire.CanonicalAddr(own) == wire.CanonicalAddr(server) || !bind.IsValid() && own.IsLoopback() {
		return netip.AddrPortFrom(own, 0), nil
	}
	return netip.AddrPortFrom(own, RoCEPort), nil
}

// openEndpoint opens a device at an address, unless there is one already, which has to
// be at want if that is an address.
func (p *DeviceSource) openEndpoint(at netip.AddrPort, want netip.Addr) (_ *Endpoint, err error) {
	e := &Endpoint{Device: p.Device}
	if p.Device == nil {
		if e.Device, err = p.Open(at); err != nil {
			return nil, err
		}
		e.ownsDevice = true
	}
	if e.Manager, err = cm.New(e.Device, cm.Options{}); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if is := e.Addr(); p.Device != nil && want.IsValid() && !want.IsUnspecified() && wire.CanonicalAddr(want) != is {
		return nil, errors.Join(fmt.Errorf("the device is at %v and cannot be bound to %v; name one address", is, want), e.Close())
	}
	return e, nil
}

// Addr is the adapter's address.
func (e *Endpoint) Addr() netip.Addr { return e.Manager.Addr().Addr() }

// Close closes the manager, and the device if it was opened for the end.
func (e *Endpoint) Close() (err error) {
	if e.Manager != nil {
		err = e.Manager.Close()
	}
	if e.ownsDevice {
		err = errors.Join(err, e.Device.Close())
	}
	return err
}
