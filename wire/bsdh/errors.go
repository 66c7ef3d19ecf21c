package bsdh

import (
	"errors"
	"fmt"
)

// ErrMalformed is in every error of this package: bytes that are no message of
// SDP, or lie about their length.
var ErrMalformed = errors.New("malformed SDP message")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// fits reports an extended header that is not all there.
func fits(b []byte, name string, bytes int) error {
	if len(b) < bytes {
		return malformed("the extended header of %s takes %d bytes, %d are there", name, bytes, len(b))
	}
	return nil
}
