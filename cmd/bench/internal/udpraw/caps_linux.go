package udpraw

import "sync"

// HasOffload tells whether the kernel has UDP_SEGMENT and UDP_GRO.
func HasOffload() bool { return MaxSegments() > 1 }

// MaxSegments is the number of packets that one GSO buffer may hold: 128 in
// newer kernels, 64 in older ones (UDP_MAX_SEGMENTS), 1 without GSO.
func MaxSegments() int { return probeSegments() }

var probeSegments = sync.OnceValue(func() int {
	s, err := openRawSocket(socketOptions{offload: true})
	if err != nil {
		return 1
	}
	defer s.close()
	s.setPeer(s.localAddr()) // nobody reads it: it goes when the socket is closed
	for n := 128; n > 1; n /= 2 {
		if s.sendSegments(make([]byte, n), 1) == nil {
			return n
		}
	}
	return 1
})
