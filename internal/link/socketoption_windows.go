package link

import (
	"os"

	"golang.org/x/sys/windows"
)

func (o socketOption) apply(fd uintptr) error {
	return os.NewSyscallError("setsockopt "+o.name, windows.SetsockoptInt(windows.Handle(fd), o.level, o.what, o.value))
}
