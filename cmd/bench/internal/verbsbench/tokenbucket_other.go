//go:build !linux

package verbsbench

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// OpenTokenBucket returns an error: there are no network namespaces.
func OpenTokenBucket(TokenBucketConfig) (*Bottleneck, error) {
	return nil, fmt.Errorf("token bucket filter: %w", errors.ErrUnsupported)
}

// A tcpStream is a stream of TCP; there is none.
type tcpStream struct{ received atomic.Int64 }

// Close does nothing.
func (s *tcpStream) Close() error { return nil }
