package sharedfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// Supported reports whether the package works on this system.
const Supported = true

// Create creates a file of n zero bytes and returns its path. The caller removes it.
func Create(n int) (path string, err error) {
	dir := "/dev/shm"
	if unix.Access(dir, unix.W_OK) != nil {
		dir = ""
	}
	f, err := os.CreateTemp(dir, "softrnic-bench-*")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := f.Truncate(int64(n)); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// Map maps n bytes of a file (mmap(2), MAP_SHARED). The caller unmaps it.
func Map(path string, n int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mem, err := unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return mem, os.NewSyscallError("mmap", err)
}

// Unmap ends the use of memory that Map has returned.
func Unmap(mem []byte) error { return os.NewSyscallError("munmap", unix.Munmap(mem)) }
