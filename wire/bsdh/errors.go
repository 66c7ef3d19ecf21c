package bsdh

import (
	"errors"
	"fmt"
)

// ErrMalformed is in every error of this package: bytes that are no message of
// SDP, or lie about their length.
var ErrMalformed = errors.New("malformed SDP message")

func malformedError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// checkLength reports an extended header that is not all there.
func checkLength(b []byte, name string, bytes int) error {
	if len(b) < bytes {
		return malformedError("the extended header of %s takes %d bytes, %d are there", name, bytes, len(b))
	}
	return nil
}
