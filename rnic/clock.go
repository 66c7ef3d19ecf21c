package rnic

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// processStart is the zero of the monotonic clock.
var processStart = time.Now()

// monotonicNow is nanoseconds since the process began, never 0.
func monotonicNow() int64 { return int64(time.Since(processStart)) + 1 }

// secureRandom draws 32 bits that nobody can guess.
func secureRandom() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.NativeEndian.Uint32(b[:])
}
