package tcp

import "golang.org/x/sys/unix"

// writev writes two buffers in one system call.
func writev(fd int, a, b []byte) (int, error) { return unix.Writev(fd, [][]byte{a, b}) }
