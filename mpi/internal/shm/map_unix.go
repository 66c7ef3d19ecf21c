//go:build unix

package shm

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const supported = true

// mapFile maps a file into memory (mmap(2)).
func mapFile(f *os.File, size int) ([]byte, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, os.NewSyscallError("mmap", err))
	}
	return mem, nil
}

func unmapFile(mem []byte) error { return unix.Munmap(mem) }
