//go:build unix && !linux

package tcp

import "golang.org/x/sys/unix"

// writev writes two buffers.
func writev(fd int, a, b []byte) (int, error) {
	n, err := unix.Write(fd, a)
	if n < len(a) || err != nil {
		return n, err
	}
	m, err := unix.Write(fd, b)
	return n + max(m, 0), err
}
