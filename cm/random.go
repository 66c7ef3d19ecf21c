package cm

import (
	"crypto/rand"
	"encoding/binary"
)

// secureRandom draws from the system's source.
func secureRandom() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint32(b[:])
}
