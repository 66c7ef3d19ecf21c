package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// TestPlace checks that an advert is read back, and no other one in its place.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var words [protocol.BoardSlots * protocol.AdvertWords]uint64
		load := func(off int) uint64 { return words[(off+protocol.BoardSize)/8] }
		told := map[int]protocol.Advert{} // by offset
		first := rapid.Uint64Range(0, 1<<50).Draw(t, "first")
		for range rapid.IntRange(0, 20).Draw(t, "places") {
			p := protocol.Advert{
				Number: first + rapid.Uint64Range(0, 20).Draw(t, "number"), Addr: rapid.Uint64().Draw(t, "address"),
				RKey: rapid.Uint32().Draw(t, "key"), Length: rapid.Uint32Max(3).Draw(t, "length"),
			}
			at := protocol.AdvertOffset(p.Number)
			w := p.EncodeWords()
			require.Equal(t, 3, copy(words[(at+protocol.BoardSize)/8:], w[:]))
			told[at] = p
		}
		for number := first; number < first+30; number++ {
			p, ok := protocol.ReadAdvert(number, load)
			want, is := told[protocol.AdvertOffset(number)]
			require.Equal(t, is && want.Number == number && want.Length > 0, ok)
			if ok {
				require.Equal(t, want, p)
			}
		}
	})
}

// TestLead checks that data of a message longer than a slot begins at a cache line, and stays aligned as in
// its source.
func TestLead(t *testing.T) {
	for _, size := range []int{2048, 4096} {
		s, r := protocol.NewSender(size, 8), protocol.NewReceiver(size, 8)
		s.Connect(8)
		for _, n := range []int{size - protocol.HeaderSize, size - protocol.HeaderSize + 1, 3 * size} {
			total := 0
			for last := false; !last; {
				g, ok := s.NextSegment(n, true)
				require.True(t, ok)
				require.LessOrEqual(t, g.Size(), size)
				slot := make([]byte, size)
				if g.HeaderLen > 0 {
					protocol.PutHeader(slot, uint64(n))
				}
				require.NoError(t, r.AddSlot())
				p := r.TakeSlot(slot)
				long := size == 4096 && n > size-protocol.HeaderSize
				require.Equal(t, long && g.Off == 0, g.HeaderLen == 64)
				if long {
					require.Zero(t, g.Off%64)
				}
				require.EqualValues(t, total, p.Off)
				total += len(p.Bytes)
				last = g.Last
			}
			require.Equal(t, n, total)
			_, k := r.TakeCredits()
			require.NoError(t, s.AddCredits(k))
		}
	}
}
