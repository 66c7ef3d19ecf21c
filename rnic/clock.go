package rnic

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// started is the zero of the monotonic clock.
var started = time.Now()

// monotonic is nanoseconds since the process began, never 0.
func monotonic() int64 { return int64(time.Since(started)) + 1 }

// secureRandom draws 32 bits that nobody can guess.
func secureRandom() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.NativeEndian.Uint32(b[:])
}
