//go:build !linux

package udpraw

// HasOffload tells whether the kernel has UDP_SEGMENT and UDP_GRO.
func HasOffload() bool { return false }

// MaxSegments is the number of packets that one GSO buffer may hold: 1 without
// GSO.
func MaxSegments() int { return 1 }
