package sdp

import (
	"net/netip"
)

// An Addr is the address of one side of a connection: the adapter's IP address and a port of
// SDP's own port space.
type Addr struct{ netip.AddrPort }

// Network returns "sdp".
func (Addr) Network() string { return network }
