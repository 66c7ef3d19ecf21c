//go:build !linux

package udpraw

import "errors"

// Only the mode of package net works without raw system calls.
var modes = []Mode{Netpoll}

// HasOffload reports whether the kernel supports UDP_SEGMENT and UDP_GRO.
func HasOffload() bool { return false }

// MaxSegments returns the maximum number of packets in one GSO buffer: 1 without GSO.
func MaxSegments() int { return 1 }

// openSocket opens the portable socket, which has no offload.
func openSocket(o socketOptions) (socket, error) {
	if o.offload {
		return nil, errors.New("udpraw: UDP_SEGMENT and UDP_GRO: Linux only")
	}
	return openNetSocket(o)
}
