package link

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestSchedule compares the schedule with a list in stable order.
func TestSchedule(t *testing.T) {
	type entry struct {
		at int64
		id int
	}
	rapid.Check(t, func(t *rapid.T) {
		var s Schedule[int]
		var model []entry
		for id := range rapid.IntRange(0, 200).Draw(t, "operations") {
			if rapid.Bool().Draw(t, "put") {
				at := rapid.Int64Range(0, 20).Draw(t, "at")
				s.Push(at, id)
				model = append(model, entry{at, id})
				slices.SortStableFunc(model, func(a, b entry) int { return int(a.at - b.at) })
			} else {
				now := rapid.Int64Range(0, 20).Draw(t, "now")
				got, at, ok := s.PopDue(now)
				want := len(model) > 0 && model[0].at <= now
				require.Equal(t, want, ok)
				if want {
					require.Equal(t, model[0], entry{at, got})
					model = model[1:]
				}
			}
			require.Equal(t, len(model), s.Len())
			at, ok := s.Next()
			require.Equal(t, len(model) > 0, ok)
			if ok {
				require.Equal(t, model[0].at, at)
			}
		}
	})
}
