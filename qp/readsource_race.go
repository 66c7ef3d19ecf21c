//go:build race

package qp

import "github.com/softrnic/softrnic/internal/place"

// loadReadSource hides the load of a repeated READ from the race detector, see
// the comment in the version without it.
func loadReadSource(dst, src []byte, again bool) bool {
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
