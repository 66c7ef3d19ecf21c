package flow

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStretch checks that short messages use the first part of the send buffer cyclically, and that
// longer data has all of the buffer at once.
func TestStretch(t *testing.T) {
	credits := new(Credits)
	credits.Start(1000)
	for name, s := range map[string]Sender{
		"nic":  NewNICSender(make([]byte, 1000), 200, 5000, 30, 100),
		"rdma": NewRDMASender(make([]byte, 1000), 200, 5000, 100, credits),
	} {
		t.Run(name, func(t *testing.T) {
			farthest, pos := 0, uint64(0)
			send := func() {
				for m, ok := s.Next(); ok; m, ok = s.Next() {
					farthest, pos = max(farthest, m.Local+m.Len), m.End()
				}
			}
			for range 50 {
				require.Equal(t, 7, s.Write(make([]byte, 7)))
				send()
				s.CompleteUpTo(pos)
			}
			require.LessOrEqual(t, farthest, 200)

			for n := range 11 { // idle, with a part of the ring in use
				require.Equal(t, 63, s.Write(make([]byte, 63)), "%d", n)
				send()
			}
			require.GreaterOrEqual(t, s.Unsent(), 693)
			require.Greater(t, farthest, 200)
			require.Less(t, s.Write(make([]byte, 400)), 400, "the buffer is full")
			s.CompleteUpTo(pos)
			require.Positive(t, s.Free())
		})
	}
}
