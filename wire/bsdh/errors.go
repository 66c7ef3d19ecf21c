package bsdh

import (
	"errors"
	"fmt"
)

// ErrMalformed is wrapped by all errors of this package: the bytes are not an SDP
// message, or their length fields are inconsistent.
var ErrMalformed = errors.New("malformed SDP message")

func malformedError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// checkLength returns an error if an extended header is truncated.
func checkLength(b []byte, name string, bytes int) error {
	if len(b) < bytes {
		return malformedError("the extended header of %s takes %d bytes, %d are there", name, bytes, len(b))
	}
	return nil
}
