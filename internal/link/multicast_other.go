//go:build !linux

package link

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
)

// OpenMulticast opens a link that receives what is sent to a multicast group.
// Only Linux has it.
func OpenMulticast(Options, netip.AddrPort) (Conn, error) {
	return nil, fmt.Errorf("link: multicast on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// membership is a multicast group to join, which no link here can.
type membership struct{}
