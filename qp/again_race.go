//go:build race

package qp

// copyAgain is what it is without the race detector, which is not to look.
//
//go:norace
func copyAgain(dst, src []byte) {
	for i := range src {
		dst[i] = src[i]
	}
}
