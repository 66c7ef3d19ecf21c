package link

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// RoCEPort is the UDP port of RoCE v2.
const RoCEPort = 4791

// bindError wraps a failed bind with its likely cause and a remedy.
func bindError(addr netip.AddrPort, err error) error {
	var advice string
	switch {
	case errors.Is(err, errAddrInUse) && addr.Port() == RoCEPort && rxeHoldsPort():
		advice = "port 4791 is in use by the kernel's rxe, which takes it on every address of a network namespace; " +
			"remove it (`rdma link delete NAME`), run in another namespace (`ip netns exec`), or use another port"
	case errors.Is(err, errAddrInUse) && addr.Port() == RoCEPort:
		advice = "port 4791 is in use, perhaps by the kernel's rdma_rxe or another softrnic; " + suggestAddress(addr)
	case errors.Is(err, errAddrInUse):
		advice = fmt.Sprintf("port %d is in use by another process; %s", addr.Port(), suggestAddress(addr))
	case errors.Is(err, errAddrNotAvail):
		advice = "no interface of this machine has that address; `ip addr` lists those it has"
	case errors.Is(err, syscall.EACCES):
		advice = "ports below 1024 need privileges; use 4791 or another port above 1023"
	case errors.Is(err, errNoFamily):
		advice = "this system has no such address family; use an address of the other one"
	case errors.Is(err, syscall.EINVAL) && addr.Addr().IsLinkLocalUnicast() && addr.Addr().Is6():
		advice = "a link-local address needs its interface, as in " + exampleZone(addr.Addr())
	default:
		return fmt.Errorf("link: bind %v: %w", addr, err)
	}
	return fmt.Errorf("link: bind %v: %s: %w", addr, advice, err)
}

// IsAddrInUse reports whether a link could not be opened because its address is
// in use.
func IsAddrInUse(err error) bool { return errors.Is(err, errAddrInUse) }

// IsAddrNotLocal reports whether a link could not be opened because this host
// does not have its address, or no addresses of that family.
func IsAddrNotLocal(err error) bool {
	return errors.Is(err, errAddrNotAvail) || errors.Is(err, errNoFamily)
}

// suggestAddress returns advice on an address that may be free.
func suggestAddress(addr netip.AddrPort) string {
	if addr.Addr().Is4() && addr.Addr().IsLoopback() {
		return "use another address of 127.0.0.0/8 or another port"
	}
	return "use another address of this machine or another port"
}
