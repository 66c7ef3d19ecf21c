package fifo

import (
	"testing"

	"pgregory.net/rapid"
)

// TestFifoAgainstList compares the queue with a list, also after a burst.
func TestFifoAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var list []int
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 2*maxIdleRing).Draw(t, "n") {
					next++
					q.Push(next)
					list = append(list, next)
				}
			},
			"pop": func(t *rapid.T) {
				for range min(len(list), rapid.IntRange(1, 3*maxIdleRing).Draw(t, "n")) {
					if front := *q.Front(); front != list[0] || q.Pop() != front {
						t.Fatalf("%d, want %d", front, list[0])
					}
					list = list[1:]
				}
			},
			"": func(t *rapid.T) {
				for i, want := range list {
					if got := *q.At(i); got != want {
						t.Fatalf("%d behind %d, want %d", got, i, want)
					}
				}
				for i := len(list); i < len(q.ring); i++ {
					if v := *q.At(i); v != 0 {
						t.Fatalf("the queue keeps %d, which was popped", v)
					}
				}
				if q.Len() != len(list) || q.Len() == 0 && len(q.ring) > maxIdleRing {
					t.Fatalf("%d in %d, want %d", q.Len(), len(q.ring), len(list))
				}
			},
		})
	})
}
