//go:build !linux

package ifwatch

import "net/netip"

// Watcher is nothing on this system, which has no NETLINK_ROUTE.
type Watcher struct{}

// Watch returns nil: the state is never known to change.
func Watch(netip.Addr, int, State, func(State)) (*Watcher, error) { return nil, nil }

// Close does nothing.
func (*Watcher) Close() error { return nil }
