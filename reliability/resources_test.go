package reliability

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire"
)

// slowResource is a resource in plain numbers.
type slowResource struct {
	id                uint64
	first, last       int
	next, to          int
	pending, replayed bool
}

// TestResourcesAgainstModel compares Resources with a list: the newest limit ones are kept, the
// oldest pending one is first, and pending ones are not overwritten.
func TestResourcesAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Resources
		limit := rapid.IntRange(0, 40).Draw(t, "limit")
		r.Reset(limit)
		var list []slowResource // oldest first
		psn, id := 0, uint64(0)
		trim := func() { list = list[max(0, len(list)-limit):] }
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1: // a new request
				n := rapid.IntRange(1, 4).Draw(t, "packets")
				psn += rapid.IntRange(0, 3).Draw(t, "others")
				e := r.Add()
				exceeded := limit == 0 || len(list) == limit && list[0].pending && !list[0].replayed
				require.Equal(t, exceeded, e == nil)
				if exceeded {
					continue
				}
				id++
				e.Orig, e.First, e.Last = id, at(psn), at(psn+n-1)
				r.ScheduleResponse(e, e.First, e.Last, false)
				list = append(list, slowResource{id, psn, psn + n - 1, psn, psn + n - 1, true, false})
				trim()
				psn += n
			case 2: // a retransmitted request
				pos := psn - rapid.IntRange(0, 12).Draw(t, "behind")
				var want *slowResource
				for i := range list {
					if m := &list[i]; m.first <= pos && pos <= m.last {
						want = m
					}
				}
				e := r.FindByPSN(at(pos))
				require.Equal(t, want == nil, e == nil)
				if want == nil {
					continue
				}
				require.Equal(t, want.id, e.Orig)
				to := rapid.IntRange(pos, want.last).Draw(t, "to")
				r.ScheduleResponse(e, at(pos), at(to), true)
				want.next, want.to, want.pending, want.replayed = pos, to, true, true
			case 3, 4: // a packet is sent
				var want *slowResource
				for i := range list {
					if list[i].pending {
						want = &list[i]
						break
					}
				}
				e := r.NextPending()
				require.Equal(t, want == nil, e == nil)
				if want == nil {
					continue
				}
				require.True(t, e.Pending())
				require.Equal(t, want.id, e.Orig)
				require.Equal(t, want.replayed, e.IsReplay())
				require.Equal(t, at(want.next), e.Next)
				want.pending = want.next != want.to
				want.next++
				require.Equal(t, !want.pending, r.OnPacketSent(e))
			case 5:
				switch rapid.IntRange(0, 9).Draw(t, "rare") {
				case 0:
					limit = rapid.IntRange(0, 40).Draw(t, "new limit")
					r.Resize(limit)
					trim()
				case 1:
					r.CancelAll()
					for i := range list {
						list[i].pending = false
					}
				case 2:
					limit = rapid.IntRange(0, 40).Draw(t, "new limit")
					r.Reset(limit)
					list = nil
				}
			}
		}
	})
}

// TestResourcesAtTheirLargest tests the largest ring, of 2048.
func TestResourcesAtTheirLargest(t *testing.T) {
	const limit = 2048
	var r Resources
	r.Reset(limit)
	for i := range 5000 {
		e := r.Add()
		require.NotNil(t, e)
		e.First, e.Last = at(i), at(i)
		r.ScheduleResponse(e, e.First, e.Last, false)
		if i >= limit-1 {
			e = r.NextPending()
			require.Equal(t, at(i-(limit-1)), e.First)
			require.True(t, r.OnPacketSent(e))
			require.Equal(t, at(i-(limit-1)), r.FindByPSN(at(i-(limit-1))).First)
			require.Nil(t, r.FindByPSN(at(i-limit)))
		}
	}
}

// TestNewestResourceIsFound checks that after a wrap of the PSNs an old resource is not found for a
// new request with the same PSN.
func TestNewestResourceIsFound(t *testing.T) {
	var r Resources
	r.Reset(4)
	for orig := range uint64(2) {
		e := r.Add()
		e.First, e.Last, e.Orig, e.Atomic = 7, 7, orig, true
		r.ScheduleResponse(e, 7, 7, false)
		r.OnPacketSent(e)
	}
	require.EqualValues(t, 1, r.FindByPSN(wire.PSN(7)).Orig)
}

// TestResourcesMemory checks that a ring is allocated on first use, and kept by a reset.
func TestResourcesMemory(t *testing.T) {
	var r Resources
	r.Reset(16)
	require.Nil(t, r.ring)
	r.Add()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r.Reset(16)
		r.OnPacketSent(r.respondAll())
	}))
}

// respondAll adds one resource of one packet.
func (r *Resources) respondAll() *Resource {
	e := r.Add()
	r.ScheduleResponse(e, 1, 1, false)
	return e
}

// TestReplayPermitsEviction checks that a pending response of which a part was requested again does
// not refuse a new read: the requester may have received all of it.
func TestReplayPermitsEviction(t *testing.T) {
	var r Resources
	r.Reset(1)
	e := r.Add()
	e.First, e.Last = at(0), at(3)
	r.ScheduleResponse(e, at(0), at(3), false)
	require.Nil(t, r.Add(), "the response is pending")
	require.True(t, r.ScheduleReplay(e, at(1), at(2)))
	part := r.NextPending()
	require.Equal(t, []any{at(1), at(2)}, []any{part.Next, part.To}, "before the rest")
	require.False(t, r.OnPacketSent(part))
	require.True(t, r.OnPacketSent(part))
	require.Same(t, e, r.NextPending())
	require.NotNil(t, r.Add())
	require.Nil(t, r.NextPending())
}
