package verbs

import (
	"fmt"
	"net/netip"
	"strings"
)

// GID is a global identifier: an IPv6 address or an IPv4-mapped one (union
// ibv_gid).
type GID [16]byte

// GIDFromAddr returns the GID of an IP address.
func GIDFromAddr(a netip.Addr) GID { return GID(a.As16()) }

// ParseGID reads a GID in any usual form: eight groups as ibv_devinfo prints
// them, a shortened IPv6 address, or an IPv4 address.
func ParseGID(s string) (GID, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return GID{}, &OpError{Op: "parse GID", Object: quoteTruncated(s), Err: ErrInvalid,
			Detail: "write an IPv4 or IPv6 address without a zone, such as 10.0.0.1 or fe80::1"}
	}
	return GIDFromAddr(a), nil
}

// Addr returns the address of the GID, as IPv4 if it is a mapped one.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// IsZero reports whether the GID is unset.
func (g GID) IsZero() bool { return g == GID{} }

// String writes the GID as ibv_devinfo does: eight groups of four digits.
func (g GID) String() string {
	return fmt.Sprintf("%x:%x:%x:%x:%x:%x:%x:%x",
		g[0:2], g[2:4], g[4:6], g[6:8], g[8:10], g[10:12], g[12:14], g[14:16])
}

// MarshalText is String.
func (g GID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText is ParseGID.
func (g *GID) UnmarshalText(text []byte) error {
	parsed, err := ParseGID(string(text))
	if err == nil {
		*g = parsed
	}
	return err
}

// quoteTruncated writes bad input into an error message, at a bounded length.
func quoteTruncated(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return fmt.Sprintf("%q", s)
}
