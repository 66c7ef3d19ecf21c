package qp

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/internal/place"
)

// Short names for what changes memory that others look at.

func writeMemory(dst, src []byte) (ok bool) { return place.Copy(dst, src) }

func atomicWord(b []byte) (*uint64, bool) { return place.Word64(b) }

// putHost stores v in host byte order, as atomics return it to memory.
func putHost(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }
