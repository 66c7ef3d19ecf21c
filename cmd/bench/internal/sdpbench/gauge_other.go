//go:build !linux

package sdpbench

import "net"

// sockBufFactor is how many times the memory that was asked for a socket buffer has.
const sockBufFactor = 1

// socketGauge is what only Linux has.
func socketGauge(*net.TCPConn, int) gauge { return nil }
