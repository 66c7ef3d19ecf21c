//go:build !race

package qp

import "github.com/softrnic/softrnic/internal/place"

// loadReadSource copies memory that a READ asks for, and reports whether it could. A
// READ that comes again has been answered before: the requester may have that
// answer and drop this one, and then the owner of the memory may write to it at the
// same time, as with any adapter, and nobody sees what was read.
func loadReadSource(dst, src []byte, _ bool) bool { return place.Load(dst, src) }
