package protocol_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

func Example() {
	ga := protocol.Make(3, 2, 0x40)
	fmt.Println(ga)
	fmt.Println(ga.Add(8), "|", ga.Add(-0x41))
	// Output:
	// rank 3, region 2 + 0x40
	// rank 3, region 2 + 0x48 | the null address
}

// TestGA checks the encoding of addresses, and that sums stay in their region.
func TestGA(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(0, protocol.MaxRanks-1).Draw(t, "rank")
		region := rapid.IntRange(1, protocol.MaxRegions-1).Draw(t, "region")
		offset := rapid.Uint64Range(0, protocol.MaxLength-1).Draw(t, "offset")
		ga := protocol.Make(rank, region, offset)
		require.Equal(t, []any{rank, region, offset}, []any{ga.Rank(), ga.Region(), ga.Offset()})
		n := rapid.Int().Draw(t, "n")
		if sum := int64(offset) + int64(n); sum >= 0 && sum < protocol.MaxLength && int64(n) > -protocol.MaxLength && int64(n) < protocol.MaxLength {
			require.Equal(t, protocol.Make(rank, region, uint64(sum)), ga.Add(n))
		} else {
			require.Equal(t, protocol.Null, ga.Add(n))
		}
	})
}

// TestEntry checks that an entry with a foreign word is detected, and that the zero entry is valid.
func TestEntry(t *testing.T) {
	_, ok := protocol.ParseEntry([protocol.EntryWords]uint64{})
	require.True(t, ok)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) protocol.Entry {
			return protocol.Entry{Addr: rapid.Uint64().Draw(t, name), Length: rapid.Uint64().Draw(t, "length"), RKey: rapid.Uint32().Draw(t, "rkey")}
		}
		old, e := draw("old"), draw("new")
		got, ok := protocol.ParseEntry(e.EncodeWords())
		require.True(t, ok)
		require.Equal(t, e, got)
		torn := old.EncodeWords()
		k := rapid.IntRange(0, protocol.EntryWords-1).Draw(t, "words")
		whole := e.EncodeWords()
		copy(torn[:k], whole[:k])
		if torn == old.EncodeWords() || torn == e.EncodeWords() {
			return
		}
		_, ok = protocol.ParseEntry(torn)
		require.False(t, ok)
	})
	e := protocol.Entry{Length: 100}
	require.True(t, e.ContainsRange(100, 0))
	require.True(t, e.ContainsRange(0, 100))
	require.False(t, e.ContainsRange(1, 100))
	require.False(t, e.ContainsRange(101, 0))
	require.False(t, e.ContainsRange(2, ^uint64(0)))
}

// TestModify interleaves the steps of loops of several ranks on one word. The result equals a sequential
// execution in the order of their last steps.
func TestModify(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type running struct {
			m     protocol.Modify
			plain func(word uint64) (next, old uint64)
			done  bool
		}
		small := func(name string) uint64 {
			return rapid.SampledFrom([]uint64{0, 1, 2, 1<<32 - 1, 1 << 32, 3<<32 | 1, 1<<64 - 1}).Draw(t, name)
		}
		word := small("word")
		var all []*running
		for range rapid.IntRange(1, 4).Draw(t, "ranks") {
			m := protocol.Modify{Op: protocol.AtomicOp(rapid.IntRange(0, 5).Draw(t, "op")), Compare: small("compare"), Operand: small("operand")}
			r := &running{m: m}
			if rapid.Bool().Draw(t, "half") {
				at := rapid.SampledFrom([]uint64{0, 4}).Draw(t, "at")
				r.m.SetWidth4(at, false)
				r.plain = func(w uint64) (uint64, uint64) {
					b := binary.LittleEndian.AppendUint64(nil, w)
					old := binary.LittleEndian.Uint32(b[at:])
					binary.LittleEndian.PutUint32(b[at:], plain(m.Op, old, uint32(m.Compare), uint32(m.Operand)))
					return binary.LittleEndian.Uint64(b), uint64(old)
				}
			} else {
				r.plain = func(w uint64) (uint64, uint64) { return plain(m.Op, w, m.Compare, m.Operand), w }
			}
			all = append(all, r)
		}
		for left, steps := len(all), 0; left > 0; steps++ {
			require.Less(t, steps, 4*len(all)*(len(all)+2), "some contenders make progress")
			r := all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]
			for i := 0; r.done && i < len(all); i++ {
				r = all[i]
			}
			before := word
			want, old := r.plain(word)
			if r.m.IsNative() {
				word += r.m.Operand
				r.done = true
			} else {
				compare, swap := r.m.NextSwap()
				if word == compare {
					word = swap
				}
				r.done = r.m.HandleResult(before)
			}
			if !r.done {
				require.Equal(t, before, word)
				continue
			}
			left--
			require.Equal(t, want, word)
			require.Equal(t, old, r.m.OldValue(before))
		}
	})
}

func plain[T uint32 | uint64](op protocol.AtomicOp, old, compare, v T) T {
	switch op {
	case protocol.CompareSwap:
		if old == compare {
			return v
		}
		return old
	case protocol.Swap:
		return v
	case protocol.Add:
		return old + v
	case protocol.Xor:
		return old ^ v
	case protocol.Or:
		return old | v
	default:
		return old & v
	}
}

// TestModifyBigEndian checks that the first half of a big-endian word is the upper one.
func TestModifyBigEndian(t *testing.T) {
	m := protocol.Modify{Op: protocol.Swap, Operand: 7}
	m.SetWidth4(0, true)
	require.Equal(t, uint64(7<<32|9), m.ApplyTo(8<<32|9))
	require.EqualValues(t, 8, m.OldValue(8<<32|9))
}

// TestUnknownAtomic checks the name of an invalid operation.
func TestUnknownAtomic(t *testing.T) {
	require.Equal(t, "AtomicOp(200)", protocol.AtomicOp(200).String())
	require.Equal(t, "cas", protocol.CompareSwap.String())
}
