package qp

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/internal/place"
)

// writeMemory copies src to registered memory, see place.Copy.
func writeMemory(dst, src []byte) (ok bool) { return place.Copy(dst, src) }

// atomicWord returns b as a word for atomics, see place.Word64.
func atomicWord(b []byte) (*uint64, bool) { return place.Word64(b) }

// putHost stores v in host byte order, as atomics return it.
func putHost(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }
