package fifo

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestSlotsAgainstSlice compares Slots with a slice that is appended to, cut at the front,
// and restored there.
func TestSlotsAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ring Slots[int]
		var model []int
		limit, next := 40, 0
		over := 0 // slots that PushFront may have made beyond the limit
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"push", "push", "pop", "unpop", "limit"}).Draw(t, "step") {
			case "push":
				slot := ring.Push(limit)
				require.Equal(t, len(model) < limit, slot != nil)
				if slot != nil {
					next++
					*slot = next
					model = append(model, next)
				}
			case "pop":
				slot := ring.Pop()
				require.Equal(t, len(model) > 0, slot != nil)
				if slot != nil {
					require.Equal(t, model[0], *slot)
					model = model[1:]
				}
			case "unpop":
				next++
				*ring.PushFront() = next
				model = append([]int{next}, model...)
				over = max(over, len(model))
			case "limit":
				limit = rapid.IntRange(len(model), max(60, len(model))).Draw(t, "new limit")
				if len(ring.slots) > limit {
					ring.Resize(limit)
				}
				over = 0
			}
			require.Equal(t, len(model), ring.Len())
			for i, want := range model {
				require.Equal(t, want, *ring.At(i))
			}
			require.LessOrEqual(t, len(ring.slots), max(limit, over))
			if len(model) > 0 {
				require.Equal(t, model[0], *ring.Front())
			} else {
				require.Nil(t, ring.Front())
			}
		}
	})
}

func TestSlotsGrowsWithUse(t *testing.T) {
	var ring Slots[byte]
	for range 20 {
		require.NotNil(t, ring.Push(1<<20))
	}
	require.Len(t, ring.slots, 32)
}

func TestSlotsKeepsWhatSlotsOwn(t *testing.T) {
	var ring Slots[[]int]
	turn := func() {
		slot := ring.Push(4)
		*slot = append((*slot)[:0], 1, 2, 3)
		ring.Pop()
	}
	for range 4 {
		turn()
	}
	require.Zero(t, testing.AllocsPerRun(100, turn))
}
