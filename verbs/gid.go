package verbs

import (
	"fmt"
	"net/netip"
)

// GID is a global identifier: an IPv6 address or an IPv4-mapped one (union
// ibv_gid).
type GID [16]byte

// GIDFromAddr returns the GID of an IP address.
func GIDFromAddr(a netip.Addr) GID { return GID(a.As16()) }

// Addr returns the address of the GID, as IPv4 if it is a mapped one.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// IsZero reports whether the GID is unset.
func (g GID) IsZero() bool { return g == GID{} }

// IsMulticast reports whether the GID names a multicast group: ff00::/8, or
// a mapped 224.0.0.0/4.
func (g GID) IsMulticast() bool { return g.Addr().IsMulticast() }

// String writes the GID as ibv_devinfo does: eight groups of four digits.
func (g GID) String() string {
	return fmt.Sprintf("%x:%x:%x:%x:%x:%x:%x:%x",
		g[0:2], g[2:4], g[4:6], g[6:8], g[8:10], g[10:12], g[12:14], g[14:16])
}
