package dropin_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/dropin"
)

// fileInfo is the information about a file with an owner.
type fileInfo struct {
	mode     fs.FileMode
	uid, gid int
}

func (fileInfo) Name() string        { return "" }
func (fileInfo) Size() int64         { return 0 }
func (i fileInfo) Mode() fs.FileMode { return i.mode }
func (fileInfo) ModTime() time.Time  { return time.Time{} }
func (fileInfo) IsDir() bool         { return false }
func (i fileInfo) Sys() any          { return &syscall.Stat_t{Uid: uint32(i.uid), Gid: uint32(i.gid)} }

// TestSecurityOf checks that only a change of user or group makes a program secure.
func TestSecurityOf(t *testing.T) {
	file := writeFile(t, filepath.Join(t.TempDir(), "program"), nil)
	uid, gid := os.Getuid(), os.Getgid()
	for _, c := range []struct {
		info fileInfo
		want string
	}{
		{fileInfo{0o755, uid + 1, gid + 1}, ""},
		{fileInfo{0o755 | fs.ModeSetuid, uid, gid}, ""},
		{fileInfo{0o755 | fs.ModeSetuid, uid + 1, gid}, "setuid"},
		{fileInfo{0o755 | fs.ModeSetgid, uid, gid}, ""},
		{fileInfo{0o755 | fs.ModeSetgid, uid, gid + 1}, "setgid"},
	} {
		require.Equal(t, c.want, dropin.SecurityOf(file, c.info), c.info)
	}
}
