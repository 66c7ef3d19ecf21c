//go:build !linux

package link

import (
	"errors"
	"fmt"
	"net"
)

// A TCP is the link of a device whose queue pairs have a TCP connection each, which needs Linux.
type TCP struct{ Conn }

// OpenTCP returns errors.ErrUnsupported.
func OpenTCP(Options) (*TCP, error) {
	return nil, fmt.Errorf("link: iWARP needs Linux: %w", errors.ErrUnsupported)
}

// Accept returns net.ErrClosed.
func (t *TCP) Accept() (*net.TCPConn, error) { return nil, net.ErrClosed }

// Ready returns ids.
func (t *TCP) Ready(ids []uint32) []uint32 { return ids }

// Adopt returns errors.ErrUnsupported.
func (t *TCP) Adopt(*net.TCPConn, uint32) (*Stream, error) { return nil, errors.ErrUnsupported }

// A Stream is an adopted TCP connection.
type Stream struct{}

// Read, Write and the other methods are never called.
func (s *Stream) Read([][]byte) (n int, again bool, err error) { return 0, false, net.ErrClosed }

// Write returns net.ErrClosed.
func (s *Stream) Write([][]byte) (int, error) { return 0, net.ErrClosed }

// MaxSegmentSize returns 0.
func (s *Stream) MaxSegmentSize() int { return 0 }

// WatchEvents does nothing.
func (s *Stream) WatchEvents(readable, writable bool) {}

// WatchesWritable returns false.
func (s *Stream) WatchesWritable() bool { return false }

// Close does nothing.
func (s *Stream) Close() {}

// HasInput reports whether a connection has data that was not read, has ended or has failed.
func HasInput(*net.TCPConn) bool { return false }
