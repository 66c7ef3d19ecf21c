//go:build !race

package qp

import "github.com/softrnic/softrnic/internal/place"

// loadReadSource copies the source of a READ response and reports whether it
// was readable. A repeated READ was answered before: the requester may have the
// response, so the application may write to the memory concurrently, as with
// any adapter, and the data of the second response is discarded.
func loadReadSource(dst, src []byte, _ bool) bool { return place.Load(dst, src) }
