package deadline_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/internal/deadline"
)

type object struct {
	name  string
	timer deadline.Entry[int64]
}

// Two objects, one of which moves to a later time.
func Example() {
	var timers deadline.Heap[int64, *object]
	a, b := &object{name: "a"}, &object{name: "b"}
	timers.Set(&a.timer, a, 10)
	timers.Set(&b.timer, b, 20)
	timers.Set(&a.timer, a, 30)
	fmt.Println(timers.Next(), timers.PopDue(25).name, timers.PopDue(25) == nil, a.timer.At())
	// Output: 20 b true 30
}

// TestAgainstMap sets, moves and removes deadlines, and checks that each object expires at its
// deadline, once, and in order.
func TestAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var timers deadline.Heap[int64, *object]
		objects := make([]*object, 20)
		for i := range objects {
			objects[i] = &object{}
		}
		model := map[*object]int64{}
		now := int64(1)
		some := rapid.IntRange(0, len(objects)-1)
		draw := func(t *rapid.T) (*object, int64) {
			return objects[some.Draw(t, "object")], now + rapid.Int64Range(0, 100).Draw(t, "in")
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				o, at := draw(t)
				timers.Set(&o.timer, o, at)
				model[o] = at
			},
			"set earlier": func(t *rapid.T) {
				o, at := draw(t)
				timers.SetEarlier(&o.timer, o, at)
				if was, ok := model[o]; !ok || at < was {
					model[o] = at
				}
			},
			"no earlier": func(t *rapid.T) {
				o, _ := draw(t)
				timers.SetEarlier(&o.timer, o, 0)
			},
			"remove": func(t *rapid.T) {
				o, _ := draw(t)
				if rapid.Bool().Draw(t, "by 0") {
					timers.Set(&o.timer, o, 0)
				} else {
					timers.Remove(&o.timer)
				}
				delete(model, o)
			},
			"pass": func(t *rapid.T) {
				now += rapid.Int64Range(0, 60).Draw(t, "time")
				last := int64(0)
				for o := timers.PopDue(now); o != nil; o = timers.PopDue(now) {
					at, ok := model[o]
					require.True(t, ok)
					require.LessOrEqual(t, at, now)
					require.GreaterOrEqual(t, at, last)
					last = at
					delete(model, o)
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), timers.Len())
				require.ElementsMatch(t, slices.Collect(maps.Keys(model)), timers.Objects())
				earliest := int64(0)
				for _, at := range model {
					if earliest == 0 || at < earliest {
						earliest = at
					}
				}
				require.Equal(t, earliest, timers.Next())
				for _, o := range objects {
					require.Equal(t, model[o], o.timer.At())
				}
			},
		})
	})
}
