package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/acp/protocol"
)

// TestPlace: a place on a board is read back, and no other in its stead.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var words [protocol.Places * protocol.PlaceWords]uint64
		load := func(i int) uint64 { return words[i] }
		told := map[uint64]protocol.Place{} // by where they are
		first := rapid.Uint64Range(0, 1<<50).Draw(t, "first")
		for range rapid.IntRange(0, 20).Draw(t, "places") {
			p := protocol.Place{
				Number: first + rapid.Uint64Range(0, 20).Draw(t, "number"), Addr: rapid.Uint64().Draw(t, "address"),
				RKey: rapid.Uint32().Draw(t, "key"), Length: rapid.Uint32().Draw(t, "length"),
			}
			at := protocol.Board{}.At(p.Number)
			w := p.Words()
			copy(words[at/8:], w[:])
			told[at] = p
		}
		for number := first; number < first+30; number++ {
			p, ok := protocol.ReadPlace(number, load)
			want, is := told[protocol.Board{}.At(number)]
			require.Equal(t, is && want.Number == number, ok)
			if ok {
				require.Equal(t, want, p)
			}
		}
	})
}

// TestBoard: long messages in slots of some size say where places are told, others have no room for that.
func TestBoard(t *testing.T) {
	b := protocol.Board{Addr: 1 << 40, RKey: 77}
	for _, size := range []int{2048, 4096} {
		s, r := protocol.NewSender(size, 8), protocol.NewReceiver(size, 8)
		s.Connect(8)
		for _, n := range []int{size - protocol.HeaderSize, size - protocol.HeaderSize + 1, 3 * size} {
			total := 0
			for last := false; !last; {
				g, ok := s.Next(n, true)
				require.True(t, ok)
				require.LessOrEqual(t, g.Bytes(), size)
				slot := make([]byte, size)
				if g.Lead > 0 {
					g.AppendLead(slot[:0], uint64(n), b)
				}
				require.NoError(t, r.More())
				p := r.Take(slot)
				require.Equal(t, g.Lead == 64, p.Board == b)
				require.Equal(t, g.Lead == 64, g.Off == 0 && size == 4096 && n > size-protocol.HeaderSize)
				require.EqualValues(t, total, p.Off)
				require.Zero(t, g.Off%protocol.HeaderSize, "later slots begin where words of the message do")
				total += len(p.Bytes)
				last = g.Last
			}
			require.Equal(t, n, total)
			_, k := r.Tell()
			require.NoError(t, s.Credit(k))
		}
	}
}
