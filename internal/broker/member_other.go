//go:build !linux

package broker

import (
	"errors"
	"net/netip"
	"runtime"
)

// A Member is a slot of a shared address. Only Linux has shared addresses.
type Member struct{}

// Join returns an error that wraps errors.ErrUnsupported.
func Join(addr netip.AddrPort) (*Member, error) {
	return nil, &Error{Addr: addr, Op: "join", Err: errors.ErrUnsupported, Detail: "only Linux steers packets among processes, this is " + runtime.GOOS}
}

// Slot returns 0.
func (m *Member) Slot() int { return 0 }

// Socket returns -1.
func (m *Member) Socket() int { return -1 }

// IDPrefix returns no prefix.
func (m *Member) IDPrefix() (prefix uint32, bits int) { return 0, 0 }

// AddManager does nothing.
func (m *Member) AddManager() error { return nil }

// RemoveManager does nothing.
func (m *Member) RemoveManager() {}

// HasManager returns false.
func (m *Member) HasManager(int) bool { return false }

// Register does nothing.
func (m *Member) Register(uint64) (bool, error) { return true, nil }

// Unregister does nothing.
func (m *Member) Unregister(uint64) {}

// AddConn does nothing.
func (m *Member) AddConn(netip.AddrPort, uint32, uint32, uint32) {}

// RemoveConn does nothing.
func (m *Member) RemoveConn(uint32) {}

// Close does nothing.
func (m *Member) Close() error { return nil }
