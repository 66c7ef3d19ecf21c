package progress

import (
	"context"
	"sync"
	"testing"
)

// benchSource has an event at each Poll, for which ready counts.
type benchSource struct{ events, wanted int }

func (s *benchSource) Prepare(Waitable)                {}
func (s *benchSource) Poll() bool                      { s.events++; return true }
func (s *benchSource) Block(ctx context.Context) error { return ctx.Err() }
func (s *benchSource) Ready() bool                     { return s.events >= s.wanted }

// BenchmarkWait measures a wait of one goroutine for one event: the overhead of the engine
// over a direct call of the source.
func BenchmarkWait(b *testing.B) {
	var mu sync.Mutex
	s := &benchSource{}
	e := New(&mu, s)
	mu.Lock()
	defer mu.Unlock()
	b.ReportAllocs()
	for b.Loop() {
		s.wanted = s.events + 1
		if err := e.Wait(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}
