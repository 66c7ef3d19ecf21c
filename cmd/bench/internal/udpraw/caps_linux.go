package udpraw

import "sync"

// HasOffload reports whether the kernel supports UDP_SEGMENT and UDP_GRO.
func HasOffload() bool { return MaxSegments() > 1 }

// MaxSegments returns the maximum number of packets in one GSO buffer (UDP_MAX_SEGMENTS): 128
// in newer kernels, 64 in older ones, 1 without GSO.
func MaxSegments() int { return probeSegments() }

var probeSegments = sync.OnceValue(func() int {
	s, err := openRawSocket(socketOptions{offload: true})
	if err != nil {
		return 1
	}
	defer s.close()
	s.setPeer(s.localAddr()) // sends to itself; the packets are dropped when the socket is closed
	for n := 128; n > 1; n /= 2 {
		if s.sendSegments(make([]byte, n), 1) == nil {
			return n
		}
	}
	return 1
})
