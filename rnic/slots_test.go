package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestSlotRingAgainstSlice compares a slotRing with a slice that is appended to, cut at the front,
// and restored there.
func TestSlotRingAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ring slotRing[int]
		var model []int
		limit, next := 40, 0
		over := 0 // slots that unpop may have made beyond the limit
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"push", "push", "pop", "unpop", "limit"}).Draw(t, "step") {
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
			case "unpop":
				next++
				*ring.pushFront() = next
				model = append([]int{next}, model...)
				over = max(over, len(model))
			case "limit":
				limit = rapid.IntRange(len(model), max(60, len(model))).Draw(t, "new limit")
				if len(ring.slots) > limit {
					ring.resize(limit)
				}
				over = 0
			}
			require.Equal(t, len(model), ring.n)
			require.LessOrEqual(t, len(ring.slots), max(limit, over))
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
