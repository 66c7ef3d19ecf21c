//go:build unix

package sdp_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestMemoryFaults writes from memory, and reads into memory, beyond the end of its file: the error
// is EFAULT, as with a socket, and the stream continues at its position.
func TestMemoryFaults(t *testing.T) {
	for _, d := range designs {
		t.Run(d.String(), func(t *testing.T) {
			page := os.Getpagesize()
			f, err := os.Create(filepath.Join(t.TempDir(), "file"))
			require.NoError(t, err)
			defer f.Close()
			require.NoError(t, f.Truncate(int64(2*page)))
			mem, err := unix.Mmap(int(f.Fd()), 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			require.NoError(t, err)
			defer unix.Munmap(mem)
			require.NoError(t, f.Truncate(int64(page)))

			x, y := newEnds(t, rnic.Options{}, sdp.Options{FlowControl: d}).dial(t)
			n, err := x.Write(mem[page-3 : page+3])
			require.ErrorIs(t, err, syscall.EFAULT)
			require.Zero(t, n)

			_, err = x.Write([]byte("hello"))
			require.NoError(t, err)
			n, err = y.Read(mem[page : page+8])
			require.ErrorIs(t, err, syscall.EFAULT)
			require.Zero(t, n)
			got := make([]byte, 5)
			_, err = io.ReadFull(y, got)
			require.NoError(t, err)
			require.Equal(t, "hello", string(got))
		})
	}
}
