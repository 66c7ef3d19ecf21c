package shm

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The file is anonymous memory (memfd_create(2)), so that nothing is left when the process ends.
// Other processes of the user open it by its descriptor in /proc (proc(5)).

func newFile() (f *os.File, name string, err error) {
	fd, err := unix.MemfdCreate("softrnic", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, "", os.NewSyscallError("memfd_create", err)
	}
	f = os.NewFile(uintptr(fd), "memfd")
	return f, fmt.Sprintf("%d-%d", os.Getpid(), fd), nil
}

func openFile(name string) (*os.File, error) {
	var pid, fd int
	if n, err := fmt.Sscanf(name, "%d-%d", &pid, &fd); n != 2 || err != nil || fmt.Sprintf("%d-%d", pid, fd) != name {
		return nil, fmt.Errorf("malformed segment name %q", name)
	}
	return os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), os.O_RDWR, 0)
}

func removeFile(f *os.File, _ string) error { return f.Close() }
