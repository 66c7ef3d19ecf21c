package tcp

import "golang.org/x/sys/unix"

// writeVector writes a list of buffers in one system call.
func writeVector(fd int, list [][]byte) (int, error) {
	if len(list) == 1 {
		return unix.Write(fd, list[0])
	}
	return unix.Writev(fd, list)
}
