//go:build !unix

package server

import (
	"errors"
	"net"
	"os"
)

// CanPair reports whether processes inherit sockets here, so that Pair works.
const CanPair = false

// Pair says that sockets are not inherited here.
func Pair() (net.Conn, *os.File, error) {
	return nil, nil, errors.New("sockets are not inherited on this system")
}
