//go:build !unix

package pmi

import (
	"errors"
	"net"
)

// openInherited says that sockets are not inherited here.
func openInherited(int) (net.Conn, error) {
	return nil, errors.New("sockets are not inherited on this system; a manager here has to use PMI_PORT")
}
