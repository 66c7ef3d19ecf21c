//go:build !linux

package ifwatch

import "net/netip"

// A Watcher does nothing on this system, which has no NETLINK_ROUTE.
type Watcher struct{}

// Watch returns nil: changes of the state are not detected.
func Watch(netip.Addr, int, State, func(State)) (*Watcher, error) { return nil, nil }

// Close does nothing.
func (*Watcher) Close() error { return nil }
