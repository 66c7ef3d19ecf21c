package rma_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi/internal/rma"
)

func TestSpan(t *testing.T) {
	s := rma.Span{Addr: 16, Size: 8}
	require.True(t, s.Contains(s))
	require.True(t, s.Contains(rma.Span{Addr: 23, Size: 1}))
	require.False(t, s.Contains(rma.Span{Addr: 23, Size: 2}))
	require.False(t, s.Contains(rma.Span{Addr: 15, Size: 2}))
	require.False(t, s.Contains(rma.Span{Addr: 17, Size: math.MaxUint64}))
	require.False(t, s.Contains(rma.Span{Addr: math.MaxUint64 - 7, Size: 16}))
	require.False(t, rma.Span{Addr: 16}.Valid())
	require.False(t, rma.Span{Addr: math.MaxUint64, Size: 1}.Valid())
	require.True(t, rma.Span{Addr: math.MaxUint64 - 1, Size: 1}.Valid())
	require.Equal(t, "8 bytes from 0x10 on", s.String())
}

// TestSpans compares spans with a list of all bytes.
func TestSpans(t *testing.T) {
	const room = 60
	rapid.Check(t, func(t *rapid.T) {
		var spans rma.Spans[int]
		var bytes [room]int         // the owner of each byte, 0 for none
		begin := map[int]rma.Span{} // by owner
		draw := func() rma.Span {
			addr := rapid.IntRange(0, room-1).Draw(t, "address")
			return rma.Span{Addr: uint64(addr), Size: uint64(rapid.IntRange(1, min(12, room-addr)).Draw(t, "size"))}
		}
		for i := 1; i <= rapid.IntRange(1, 40).Draw(t, "steps"); i++ {
			s := draw()
			owners, gaps := map[int]bool{}, false
			for a := s.Addr; a < s.End(); a++ {
				if bytes[a] != 0 {
					owners[bytes[a]] = true
				} else {
					gaps = true
				}
			}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				other, ok := spans.Add(s, i)
				require.Equal(t, len(owners) == 0, ok)
				if !ok {
					require.True(t, other.Overlaps(s))
					require.Contains(t, begin, bytes[other.Addr])
					require.Equal(t, begin[bytes[other.Addr]], other)
					continue
				}
				begin[i] = s
				for a := s.Addr; a < s.End(); a++ {
					bytes[a] = i
				}
			case 1:
				item, ok := spans.Find(s)
				require.Equal(t, len(owners) == 1 && !gaps, ok)
				if ok {
					require.True(t, owners[item])
				}
			case 2:
				item, ok := spans.Remove(s.Addr)
				want := bytes[s.Addr]
				require.Equal(t, want != 0 && begin[want].Addr == s.Addr, ok)
				if ok {
					require.Equal(t, want, item)
					for a := begin[item].Addr; a < begin[item].End(); a++ {
						bytes[a] = 0
					}
					delete(begin, item)
				}
			default:
				var below, above rma.Span
				for _, b := range begin {
					if b.Addr <= s.Addr && (below.Size == 0 || b.Addr > below.Addr) {
						below = b
					}
					if b.Addr > s.Addr && (above.Size == 0 || b.Addr < above.Addr) {
						above = b
					}
				}
				gotBelow, gotAbove := spans.Neighbors(s.Addr)
				require.Equal(t, below, gotBelow)
				require.Equal(t, above, gotAbove)
			}
			require.Equal(t, len(begin), spans.Len())
		}
	})
}
