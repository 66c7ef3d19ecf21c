package data

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBuddy compares the allocator with a list of allocations. Blocks are long enough, disjoint and within
// the heap; other addresses cannot be freed; and after all frees the heap is merged completely.
func TestBuddy(t *testing.T) {
	for range 20 { // in addition to TestMain's number of checks
		rapid.Check(t, tryBuddy)
	}
}

func tryBuddy(t *rapid.T) {
	mem := make([]byte, rapid.IntRange(heapMin, 1<<16).Draw(t, "heap"))
	op := func(f func(b buddy) error) error {
		b, err := openBuddy(newWordCache(localStore(mem)))
		require.NoError(t, err)
		if err = f(b); err == nil {
			localStore(mem).writeWords(b.edits)
		}
		return err
	}
	s := newWordCache(localStore(mem))
	require.NoError(t, formatHeap(s, uint64(len(mem))))
	localStore(mem).writeWords(s.edits)
	fresh := string(mem[:offStates])
	live := map[uint64]uint64{} // length by offset
	free := func(off uint64) error { return op(func(b buddy) error { return b.free(off) }) }
	t.Repeat(map[string]func(*rapid.T){
		"alloc": func(t *rapid.T) {
			n := rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64Range(0, 1<<17)).Draw(t, "n")
			err := op(func(b buddy) error {
				off, err := b.alloc(n)
				if err != nil {
					return err
				}
				require.Zero(t, off%blockSize)
				require.GreaterOrEqual(t, off, blocksOffset(b.blocks))
				require.LessOrEqual(t, off+n, uint64(len(mem)))
				for other, long := range live {
					require.True(t, off+n <= other || other+long <= off, "%d at %d and %d at %d", n, off, long, other)
				}
				live[off] = n
				for i := range n {
					mem[off+i] = 0xee // overwrite the block: its contents are the program's
				}
				return nil
			})
			if err != nil {
				require.ErrorIs(t, err, ErrNoMemory)
			}
		},
		"free": func(t *rapid.T) {
			for off := range live {
				require.NoError(t, free(off))
				delete(live, off)
				require.ErrorIs(t, free(off), ErrNotAllocated)
				return
			}
		},
		"foreign": func(t *rapid.T) {
			off := rapid.Uint64Range(0, uint64(len(mem))+100).Draw(t, "offset")
			if _, ok := live[off]; !ok {
				require.ErrorIs(t, free(off), ErrNotAllocated)
			}
		},
	})
	for off := range live {
		require.NoError(t, free(off))
	}
	require.NoError(t, op(func(b buddy) error {
		for order := range orders { // the same blocks are free, possibly in another order
			head, err := b.getWord(offHeads + 8*uint64(order))
			require.NoError(t, err)
			was, err := buddy{newWordCache(localStore([]byte(fresh))), b.blocks}.getWord(offHeads + 8*uint64(order))
			require.NoError(t, err)
			require.Equal(t, was, head)
		}
		return nil
	}))
}

// TestDamaged checks that writes to freed memory and impossible headers are detected.
func TestDamaged(t *testing.T) {
	mem := make([]byte, 4096)
	s := newWordCache(localStore(mem))
	require.NoError(t, formatHeap(s, 4096))
	localStore(mem).writeWords(s.edits)
	b, err := openBuddy(newWordCache(localStore(mem)))
	require.NoError(t, err)
	off, err := b.alloc(64)
	require.NoError(t, err)
	localStore(mem).writeWords(b.edits)
	for i := range mem[off+64:] {
		mem[off+64+uint64(i)] = 0xff
	}
	b, err = openBuddy(newWordCache(localStore(mem)))
	require.NoError(t, err)
	_, err = b.alloc(64)
	require.ErrorIs(t, err, ErrDamaged)
	mem[offBlocks+6] = 1
	_, err = openBuddy(newWordCache(localStore(mem)))
	require.ErrorIs(t, err, ErrDamaged)
}
