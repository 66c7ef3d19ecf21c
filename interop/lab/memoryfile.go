//go:build linux

package lab

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile returns an empty file that has no place in a file system and ends
// with its last user.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
