//go:build !linux

package tcp

import (
	"net"
	"time"
)

// userTimeout is the system's own.
func userTimeout(*net.TCPConn, time.Duration) {}
