//go:build !linux

package tcp

import (
	"net"
	"time"
)

// setUserTimeout is the system's own.
func setUserTimeout(*net.TCPConn, time.Duration) {}
