package rdm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/verbs"
)

// TestMemoryFaults checks that a region whose file is truncated fails the operations on it, at
// either end, and no others.
func TestMemoryFaults(t *testing.T) {
	for name, o := range ways {
		t.Run(name, func(t *testing.T) {
			a, b := endpoint(t, "", o), endpoint(t, "", o)
			ctx := guarded(t)
			p := dial(t, a, b)
			mine, theirs := region(t, a, 100_000, verbs.AccessLocalWrite), region(t, b, 100_000, everything)
			lostMine, lostTheirs := truncated(t, a), truncated(t, b)
			var op rdm.Op
			for _, n := range []int{8, 60_000} {
				for _, c := range []struct {
					want  error
					start func() error
				}{
					{rdm.ErrLocal, func() error { return p.Read(&op, lostMine.At(0, n), theirs.Remote(0)) }},
					{rdm.ErrLocal, func() error { return p.Write(&op, lostMine.At(0, n), theirs.Remote(0)) }},
					{rdm.ErrFault, func() error { return p.Read(&op, mine.At(0, n), lostTheirs.Remote(0)) }},
					{rdm.ErrFault, func() error { return p.Write(&op, mine.At(0, n), lostTheirs.Remote(0)) }},
					{rdm.ErrFault, func() error { return p.FetchAdd(&op, lostTheirs.Remote(0), 1) }},
					{rdm.ErrFault, func() error { return p.CompareSwap(&op, lostTheirs.Remote(8), 1, 2) }},
					{nil, func() error { return p.Write(&op, mine.At(0, n), theirs.Remote(0)) }},
					{nil, func() error { return p.Read(&op, mine.At(0, n), theirs.Remote(0)) }},
				} {
					require.NoError(t, c.start())
					err := op.Wait(ctx)
					if c.want == nil {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, c.want)
					}
				}
			}
			require.ErrorIs(t, p.Send(ctx, lostMine.Bytes()[:100]), rdm.ErrLocal)
			require.NoError(t, p.Send(ctx, []byte("message")))
			_, _, err := b.Recv(ctx, lostTheirs.Bytes()[:100])
			require.ErrorIs(t, err, rdm.ErrLocal)
			got := make([]byte, 100)
			n, _, err := b.Recv(ctx, got)
			require.NoError(t, err)
			require.Equal(t, "message", string(got[:n]))
		})
	}
}

// truncated registers a mapped file and truncates the file.
func truncated(t *testing.T, e *rdm.Endpoint) *rdm.Region {
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	const size = 1 << 17
	require.NoError(t, f.Truncate(size))
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Munmap(mem) })
	r, err := e.Register(mem, everything)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(0))
	return r
}
