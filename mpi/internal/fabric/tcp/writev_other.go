//go:build unix && !linux

package tcp

import "golang.org/x/sys/unix"

// writeVector writes a list of buffers, until one is not accepted completely.
func writeVector(fd int, list [][]byte) (written int, err error) {
	for _, b := range list {
		n, err := unix.Write(fd, b)
		written += max(n, 0)
		if n < len(b) || err != nil {
			return written, err
		}
	}
	return written, nil
}
