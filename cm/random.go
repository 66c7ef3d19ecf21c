package cm

import (
	"crypto/rand"
	"encoding/binary"
)

// randomUint32 draws from the system's source.
func randomUint32() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint32(b[:])
}
