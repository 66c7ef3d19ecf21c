package rnic

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func newSource(seed uint64) func() uint32 { return rand.New(rand.NewPCG(seed, 0)).Uint32 }

func TestKeysAreFoundUntilRemoved(t *testing.T) {
	table := newKeyTable(newSource(1))
	regions := make([]*region, 20000)
	for i := range regions {
		regions[i] = new(region)
		require.True(t, table.insert(regions[i]))
	}
	for i, r := range regions {
		require.Same(t, r, table.lookup(r.key))
		require.Nil(t, table.lookup(r.key^0x55), "another variant of key 0x%x", r.key)
		if i%3 == 0 {
			table.remove(r)
		}
	}
	for i, r := range regions {
		if i%3 == 0 {
			require.Nil(t, table.lookup(r.key))
		} else {
			require.Same(t, r, table.lookup(r.key))
		}
	}
}

func TestKeysBelow256AreNeverGivenOrFound(t *testing.T) {
	table := newKeyTable(func() uint32 { return 0 })
	var last *region
	for range 300 { // also across tombstones
		if last != nil {
			table.remove(last)
		}
		last = new(region)
		require.True(t, table.insert(last))
		require.GreaterOrEqual(t, last.key, uint32(1<<variantBits))
	}
	for key := range uint32(1 << variantBits) {
		require.Nil(t, table.lookup(key), "key 0x%x", key)
	}
}

// TestKeysAreDeterministic checks that the same registrations with the same random source have the
// same keys.
func TestKeysAreDeterministic(t *testing.T) {
	run := func(seed uint64) (keys []uint32) {
		table, choice := newKeyTable(newSource(seed)), rand.New(rand.NewPCG(7, 7))
		var live []*region
		for range 5000 {
			if n := len(live); n > 0 && choice.IntN(3) == 0 {
				i := choice.IntN(n)
				table.remove(live[i])
				live[i] = live[n-1]
				live = live[:n-1]
				continue
			}
			r := new(region)
			require.True(t, table.insert(r))
			live = append(live, r)
			keys = append(keys, r.key)
		}
		return keys
	}
	require.Equal(t, run(1), run(1))
	require.NotEqual(t, run(1), run(2))
}

// TestKeysCoverTheKeySpace checks that keys are from the whole key space, so that a guess hits one
// of n with a probability of n in 2^32.
func TestKeysCoverTheKeySpace(t *testing.T) {
	table := newKeyTable(newSource(3))
	var high, variant [16]int
	const n = 1600
	for range n {
		r := new(region)
		require.True(t, table.insert(r))
		high[r.key>>28]++
		variant[r.key&variantMask>>4]++
	}
	for i := range 16 {
		require.InDelta(t, n/16, high[i], 50, "indices from %x0000000", i)
		require.InDelta(t, n/16, variant[i], 50, "variants from %x0", i)
	}
}

// TestOldKeysStayDead checks that keys change on every registration, and that a closed one is not
// reused for a long time even with the worst random source.
func TestOldKeysStayDead(t *testing.T) {
	for name, source := range map[string]func() uint32{
		"random":   newSource(4),
		"constant": func() uint32 { return 0xfffffe42 },
	} {
		t.Run(name, func(t *testing.T) {
			table := newKeyTable(source)
			var old []uint32
			given := make(map[uint32]bool)
			for range quarantineSize {
				r := new(region)
				require.True(t, table.insert(r))
				require.False(t, given[r.key], "key 0x%x was reused", r.key)
				given[r.key] = true
				old = append(old, r.key)
				table.remove(r)
			}
			r := new(region)
			require.True(t, table.insert(r))
			for _, key := range old {
				require.Nil(t, table.lookup(key))
			}
		})
	}
}

// TestKeyTableStaysSmall checks that the quarantine and the table are bounded under continuous
// change.
func TestKeyTableStaysSmall(t *testing.T) {
	table := newKeyTable(newSource(5))
	for range 10 * quarantineSize {
		r := new(region)
		require.True(t, table.insert(r))
		table.remove(r)
	}
	require.Len(t, table.usedIndices, quarantineSize)
	require.Len(t, *table.slots.Load(), initialTableSlots)

	filled := 0
	for i := range *table.slots.Load() {
		if (*table.slots.Load())[i].Load() != nil {
			filled++
		}
	}
	require.Equal(t, filled, table.filled, "it decides when the table is built anew")
}

func TestKeyTableFull(t *testing.T) {
	table := newKeyTable(newSource(6))
	table.live = maxRegions
	require.False(t, table.insert(new(region)))
}

func TestReplaceKeepsTheIndex(t *testing.T) {
	table := newKeyTable(newSource(7))
	r := new(region)
	require.True(t, table.insert(r))
	next := &region{key: r.key ^ 1}
	table.replace(r, next)
	require.Nil(t, table.lookup(r.key))
	require.Same(t, next, table.lookup(next.key))
	table.remove(next)
	require.Nil(t, table.lookup(next.key))
}

// TestLookupBesideChanges checks that a region is found at all times while the table around it
// changes, and that a lookup never returns a region with another key.
func TestLookupBesideChanges(t *testing.T) {
	table := newKeyTable(newSource(8))
	stays := new(region)
	require.True(t, table.insert(stays))
	done := make(chan struct{})
	var readers, writers sync.WaitGroup
	for reader := range 2 {
		guess := newSource(uint64(reader))
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if table.lookup(stays.key) != stays {
					t.Error("a region in the table was not found")
					return
				}
				key := guess()
				if r := table.lookup(key); r != nil && r.key != key {
					t.Errorf("lookup of 0x%x found 0x%x", key, r.key)
					return
				}
			}
		})
	}
	for range 2 {
		writers.Go(func() {
			var mine []*region
			for i := range 3000 {
				r := new(region)
				table.insert(r)
				mine = append(mine, r)
				if i%4 == 3 {
					table.remove(mine[0])
					mine = mine[1:]
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

func TestLookupDoesNotAllocate(t *testing.T) {
	table := newKeyTable(newSource(9))
	r := new(region)
	require.True(t, table.insert(r))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if table.lookup(r.key) != r || table.lookup(r.key^1) != nil {
			t.Fatal("wrong region")
		}
	}))
}
