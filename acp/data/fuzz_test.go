package data

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzBuddy overwrites a heap. Allocations and frees must terminate, stay within the heap, and report the
// damage if they fail.
func FuzzBuddy(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 5}, uint16(32), uint64(700), uint64(1024))
	f.Add([]byte{0x81, 1, 1, 1, 1, 1, 1, 1}, uint16(320), uint64(64), uint64(448))
	f.Add([]byte{9, 0, 0, 0, 0, 0, 0, 0, 9}, uint16(456), uint64(64), uint64(448))
	f.Fuzz(func(t *testing.T, over []byte, at uint16, n, off uint64) {
		mem := make([]byte, 8<<10)
		s := newWordCache(localStore(mem))
		require.NoError(t, formatHeap(s, uint64(len(mem))))
		localStore(mem).writeWords(s.edits)
		if at < 16 { // the lock, and the number of blocks
			at += 16
		}
		copy(mem[min(int(at), len(mem)):], over)
		for range 2 {
			b, err := openBuddy(newWordCache(localStore(mem)))
			require.NoError(t, err)
			if _, err := b.alloc(n); err == nil {
				localStore(mem).writeWords(b.edits)
			} else {
				require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoMemory), "%v", err)
			}
			b, err = openBuddy(newWordCache(localStore(mem)))
			require.NoError(t, err)
			if err := b.free(off); err == nil {
				localStore(mem).writeWords(b.edits)
			} else {
				require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotAllocated), "%v", err)
			}
		}
	})
}
