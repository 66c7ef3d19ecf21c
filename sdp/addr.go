package sdp

import (
	"net/netip"
)

// Addr is the address of an end of a connection: the adapter's, and a port of
// SDP's own port space.
type Addr struct{ netip.AddrPort }

// Network is "sdp".
func (Addr) Network() string { return network }
