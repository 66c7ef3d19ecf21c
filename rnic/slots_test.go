package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A slotRing does what a slice does that is appended to and cut at the front.
func TestSlotRingAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ring slotRing[int]
		var model []int
		limit, next := 40, 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"push", "push", "pop", "limit"}).Draw(t, "step") {
			case "push":
				slot := ring.push(limit)
				require.Equal(t, len(model) < limit, slot != nil)
				if slot != nil {
					next++
					*slot = next
					model = append(model, next)
				}
			case "pop":
				slot := ring.pop()
				require.Equal(t, len(model) > 0, slot != nil)
				if slot != nil {
					require.Equal(t, model[0], *slot)
					model = model[1:]
				}
			case "limit":
				limit = rapid.IntRange(len(model), 60).Draw(t, "new limit")
				if len(ring.slots) > limit {
					ring.resize(limit)
				}
			}
			require.Equal(t, len(model), ring.n)
			require.LessOrEqual(t, len(ring.slots), limit)
			if len(model) > 0 {
				require.Equal(t, model[0], *ring.front())
			} else {
				require.Nil(t, ring.front())
			}
		}
	})
}

func TestSlotRingGrowsWithUse(t *testing.T) {
	var ring slotRing[byte]
	for range 20 {
		require.NotNil(t, ring.push(1<<20))
	}
	require.Len(t, ring.slots, 32)
}

func TestSlotRingKeepsWhatSlotsOwn(t *testing.T) {
	var ring slotRing[[]int]
	turn := func() {
		slot := ring.push(4)
		*slot = append((*slot)[:0], 1, 2, 3)
		ring.pop()
	}
	for range 4 {
		turn()
	}
	require.Zero(t, testing.AllocsPerRun(100, turn))
}
