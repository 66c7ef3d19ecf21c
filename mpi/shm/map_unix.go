//go:build unix

package shm

import (
	"os"

	"golang.org/x/sys/unix"
)

const supported = true

// mapFile is a file as memory (mmap(2)).
func mapFile(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmap(mem []byte) error { return unix.Munmap(mem) }
