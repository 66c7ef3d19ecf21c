//go:build !linux

package pages

import "github.com/softrnic/softrnic/internal/place"

func checkAccess(mem []byte, _ bool) *AccessError {
	for _, at := range []int{0, len(mem) - 1} {
		if !place.Readable(mem[at : at+1]) {
			return &AccessError{addressOf(mem[at:]), ErrNotReadable}
		}
	}
	return nil
}
