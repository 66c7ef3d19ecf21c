//go:build !linux

package link

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
)

// OpenMulticast returns an error: multicast links exist on Linux only.
func OpenMulticast(Options, netip.AddrPort) (Conn, error) {
	return nil, fmt.Errorf("link: multicast on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// A membership is a multicast group to join; it is empty on this system.
type membership struct{}
