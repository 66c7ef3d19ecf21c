package datatype

import "unsafe"

// copyColumn copies items of 4, 8 or 16 bytes, for example of a matrix column, while
// wire has complete ones. It copies nothing for other sizes.
func copyColumn(mem, wire []byte, size, extent int, in bool) int {
	switch size {
	case 4:
		return copyWords[[4]byte](mem, wire, extent, in)
	case 8:
		return copyWords[[8]byte](mem, wire, extent, in)
	case 16:
		return copyWords[[16]byte](mem, wire, extent, in)
	}
	return 0
}

func copyWords[W [4]byte | [8]byte | [16]byte](mem, wire []byte, extent int, in bool) (done int) {
	size := int(unsafe.Sizeof(*new(W)))
	for at := 0; len(wire)-done >= size; at += extent {
		m, w := (*W)(unsafe.Pointer(&mem[at : at+size][0])), (*W)(unsafe.Pointer(&wire[done]))
		if in {
			*m = *w
		} else {
			*w = *m
		}
		done += size
	}
	return done
}
