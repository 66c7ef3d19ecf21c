//go:build race

package qp

// copyRead is what it is without the race detector, which is not to look at what is
// read again.
func copyRead(dst, src []byte, again bool) {
	if again {
		copyUnseen(dst, src)
	} else {
		copy(dst, src)
	}
}

//go:norace
func copyUnseen(dst, src []byte) {
	for i := range src {
		dst[i] = src[i]
	}
}
