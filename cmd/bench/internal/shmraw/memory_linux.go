package shmraw

import (
	"os"

	"golang.org/x/sys/unix"
)

// Supported reports whether the package works on this system.
const Supported = true

// newFile creates the file of the shared memory.
func newFile() (string, error) {
	dir := "/dev/shm"
	if unix.Access(dir, unix.W_OK) != nil {
		dir = ""
	}
	f, err := os.CreateTemp(dir, "softrnic-bench-*")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := f.Truncate(fileBytes); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func mapFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mem, err := unix.Mmap(int(f.Fd()), 0, fileBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return mem, os.NewSyscallError("mmap", err)
}
