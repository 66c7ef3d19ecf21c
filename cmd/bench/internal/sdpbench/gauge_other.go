//go:build !linux

package sdpbench

import "net"

// doubled is how many times the memory that was asked for a socket buffer has.
const doubled = 1

// socketGauge is what only Linux has.
func socketGauge(*net.TCPConn, int) gauge { return nil }
