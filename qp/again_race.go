//go:build race

package qp

import "github.com/softrnic/softrnic/internal/place"

// loadForRead is as without the race detector, which is not to look at what is
// read again.
func loadForRead(dst, src []byte, again bool) bool {
	if again {
		return place.Try(func() { copyUnseen(dst, src) })
	}
	return place.Load(dst, src)
}

//go:norace
func copyUnseen(dst, src []byte) {
	for i := range src {
		dst[i] = src[i]
	}
}
