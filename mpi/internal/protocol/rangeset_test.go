package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestPartsAgainstBytes compares parts with a map of all bytes.
func TestPartsAgainstBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 60
		var p rangeSet
		var come [n]bool
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				from := rapid.IntRange(0, n-1).Draw(t, "from")
				to := rapid.IntRange(from+1, min(n, from+8)).Draw(t, "to")
				fresh := true
				for _, c := range come[from:to] {
					fresh = fresh && !c
				}
				if p.add(uint64(from), uint64(to)) != fresh {
					t.Fatalf("%d to %d: fresh %v, %+v", from, to, fresh, p)
				}
				for i := from; i < to && fresh; i++ {
					come[i] = true
				}
			},
			"": func(t *rapid.T) {
				var got [n]bool
				for i := range p.prefix {
					got[i] = true
				}
				last := p.prefix
				for _, s := range p.ranges {
					if s.from <= last || s.to <= s.from {
						t.Fatalf("%+v", p)
					}
					last = s.to
					for i := s.from; i < s.to; i++ {
						got[i] = true
					}
				}
				if got != come {
					t.Fatalf("%+v, want %v", p, come)
				}
			},
		})
	})
}

// TestTable checks that an id is never 0 and is not found any more once its request is done, also
// when the counter has wrapped.
func TestTable(t *testing.T) {
	var table requestTable
	var r, other Request
	table.add(&other)
	table.remove(&other)
	table.slots[0].epoch = 1<<32 - 2
	old := map[uint64]bool{}
	for range 5 {
		table.add(&r)
		require.NotZero(t, r.id)
		require.False(t, old[r.id])
		old[r.id] = true
		id := r.id
		table.add(&r)
		require.Equal(t, id, r.id)
		require.Same(t, &r, table.get(id))
		table.remove(&r)
		table.remove(&r)
		require.Nil(t, table.get(id))
		require.Zero(t, table.used)
	}
	require.Len(t, table.slots, 1)
	for _, id := range []uint64{0, 1, 1 << 32, 1<<64 - 1} {
		require.Nil(t, table.get(id))
	}
}
