package dropin

import (
	"os"
	"syscall"
)

// lockFile locks a file for this process and returns a function that unlocks it.
func lockFile(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != syscall.EINTR {
			f.Close()
			return nil, &os.PathError{Op: "lock", Path: name, Err: err}
		}
	}
}

// CreateCapture creates a file for packets, or empties it unless a running process writes to it. The
// engine holds a lock of the file of its packets.
func CreateCapture(path string) error {
	if info, err := os.Stat(path); err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeDevice) != 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil
	}
	return f.Truncate(0)
}

// Exec replaces this process by a program. It returns only with an error.
func Exec(path string, args, environ []string) error {
	return &os.PathError{Op: "exec", Path: path, Err: syscall.Exec(path, args, environ)}
}

// securityOf reports whether the kernel would run a file in secure mode, in which the dynamic linker
// ignores LD_PRELOAD: with another user or group than this process has, or with capabilities of the
// file (ld.so(8), capabilities(7)).
func securityOf(path string, info os.FileInfo) (secure string) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	mode := info.Mode()
	switch {
	case mode&os.ModeSetuid != 0 && int(s.Uid) != os.Getuid():
		return "setuid"
	case mode&os.ModeSetgid != 0 && int(s.Gid) != os.Getgid():
		return "setgid"
	}
	if n, err := syscall.Getxattr(path, "security.capability", nil); err == nil && n > 0 && os.Getuid() != 0 {
		return "file capabilities"
	}
	return ""
}
