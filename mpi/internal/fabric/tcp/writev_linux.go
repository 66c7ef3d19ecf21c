package tcp

import "golang.org/x/sys/unix"

// writev writes two pieces in one call.
func writev(fd int, a, b []byte) (int, error) { return unix.Writev(fd, [][]byte{a, b}) }
