//go:build unix

package link

import (
	"os"

	"golang.org/x/sys/unix"
)

func (o socketOption) apply(fd uintptr) error {
	return os.NewSyscallError("setsockopt "+o.name, unix.SetsockoptInt(int(fd), o.level, o.what, o.value))
}
