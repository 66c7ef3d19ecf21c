package perftest

import (
	"encoding/binary"
)

// byteOf returns the byte at an offset of a word in memory.
func byteOf(word uint64, off int) byte {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], word)
	return b[off]
}
