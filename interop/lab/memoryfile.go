//go:build linux

package lab

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile returns an empty anonymous file (memfd_create(2)).
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
