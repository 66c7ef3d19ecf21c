//go:build !linux

package udpraw

// HasOffload reports whether the kernel supports UDP_SEGMENT and UDP_GRO.
func HasOffload() bool { return false }

// MaxSegments returns the maximum number of packets in one GSO buffer: 1 without GSO.
func MaxSegments() int { return 1 }
