// Package ifwatch watches the interface with an address of this host: its link,
// its MTU, and whether it still has the address.
//
//	w, err := ifwatch.Watch(ip, index, current, func(s ifwatch.State) { ... })
//	defer w.Close()
package ifwatch

import "net/netip"

// A State describes an address and the interface that has it.
type State struct {
	HasAddr bool // an interface of this host has the address
	Up      bool // that interface is up and has a carrier
	MTU     int  // of that interface, bytes; the last known one if no interface has the address
}

// Usable reports whether packets can be sent from the address and received.
func (s State) Usable() bool { return s.HasAddr && s.Up }

// needsInterface reports whether an address belongs to one interface only, so
// that another interface with the same address does not count (RFC 4007).
func needsInterface(ip netip.Addr) bool { return ip.Is6() && ip.IsLinkLocalUnicast() }
