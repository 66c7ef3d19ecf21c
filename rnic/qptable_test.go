package rnic

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire"
)

// TestAllocateNumbers checks that numbers are spread, free, in their range, and of the right shard.
func TestAllocateNumbers(t *testing.T) {
	for _, shards := range []int{1, 3, 256} {
		table := newQPTable(0, wire.QPNMask+1)
		random := newSource(uint64(shards))
		seen := map[uint32]bool{}
		var sum float64
		const n = 20_000
		for i := range n {
			q := &queuePair{}
			table.allocateNumber(q, i%shards, shards, random)
			require.False(t, seen[q.num])
			require.GreaterOrEqual(t, q.num, uint32(16))
			require.Less(t, q.num, uint32(wire.QPNMulticast))
			require.EqualValues(t, i%shards, q.num%uint32(shards))
			require.Same(t, q, table.lookup(q.num))
			seen[q.num] = true
			sum += float64(q.num)
		}
		require.InDelta(t, 1<<23, sum/n, 1<<18, "spread over all of them")
	}
}

// TestAllocateAvoidsReserved checks that reserved and used numbers are skipped.
func TestAllocateAvoidsReserved(t *testing.T) {
	draws := []uint32{0xfffffe, 1} // the start and the step
	table := newQPTable(0, wire.QPNMask+1)
	next := func() (v uint32) { v, draws = draws[0], draws[1:]; return v }
	require.True(t, table.insert(&queuePair{num: 17}))
	var got []uint32
	for range 3 {
		q := &queuePair{}
		table.allocateNumber(q, 0, 1, next)
		got = append(got, q.num)
	}
	require.Equal(t, []uint32{0xfffffe, 16, 18}, got)
}

// TestNumbersAreQuarantined checks that the number of a closed queue pair is reused only after all others of
// its shard, for any random source.
func TestNumbersAreQuarantined(t *testing.T) {
	for _, shards := range []int{255, 256} {
		for _, draw := range []uint32{0, 51, 1 << 12, 0xffffffff} {
			table := newQPTable(0, wire.QPNMask+1)
			seen := make([]bool, wire.QPNMask+1)
			for range (wire.QPNMask+1)/shards - 18 { // some are reserved
				q := &queuePair{}
				table.allocateNumber(q, 7, shards, func() uint32 { return draw })
				require.False(t, seen[q.num], "number 0x%x comes back", q.num)
				seen[q.num] = true
				table.remove(q)
			}
		}
	}
}

func TestQPTableAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := newQPTable(0, wire.QPNMask+1)
		model := map[uint32]*queuePair{}
		number := rapid.Uint32Range(1, 300) // collides in a small table
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				q := &queuePair{num: number.Draw(t, "number")}
				require.Equal(t, model[q.num] == nil, table.insert(q))
				if model[q.num] == nil {
					model[q.num] = q
				}
			},
			"remove": func(t *rapid.T) {
				n := number.Draw(t, "number")
				if q := model[n]; q != nil {
					table.remove(q)
					delete(model, n)
				} else {
					table.remove(&queuePair{num: n}) // one that does not exist
				}
			},
			"": func(t *rapid.T) {
				n := number.Draw(t, "looked for")
				require.Same(t, model[n], table.lookup(n))
				found := map[uint32]*queuePair{}
				table.forEach(func(q *queuePair) { found[q.num] = q })
				require.Equal(t, model, found)
				require.Equal(t, len(model), table.live)
			},
		})
	})
}

// TestQPTableLookupBesideChanges checks that lookups, which are lock-free, find a queue pair while
// the table changes.
func TestQPTableLookupBesideChanges(t *testing.T) {
	table := newQPTable(0, wire.QPNMask+1)
	stays := &queuePair{num: 1 << 20}
	require.True(t, table.insert(stays))
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				if table.lookup(stays.num) != stays || table.lookup(7) != nil {
					panic("lookup")
				}
			}
		})
	}
	for i := range uint32(20_000) {
		q := &queuePair{num: 1<<20 + 1 + i%1000}
		require.True(t, table.insert(q))
		table.remove(q)
	}
	done.Store(true)
	wg.Wait()
	require.Equal(t, 1, table.live)
	require.LessOrEqual(t, len(*table.slots.Load()), initialTableSlots, "graves do not make it grow")
}
