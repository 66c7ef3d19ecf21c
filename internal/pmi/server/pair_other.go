//go:build !unix

package server

import (
	"errors"
	"net"
	"os"
)

// Pair says that sockets are not inherited here.
func Pair() (net.Conn, *os.File, error) {
	return nil, nil, errors.New("sockets are not inherited on this system")
}
