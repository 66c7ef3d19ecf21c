//go:build unix

package debug

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUser reports whether the file belongs to the effective user of this
// process.
func ownedByUser(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// modePrivate reports whether only the owner has permissions.
func modePrivate(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }

// hasEnded reports whether no process has the number. Those of other containers are not visible.
func hasEnded(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }
