package datatype_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// FuzzLayout describes memory by arbitrary numbers, and checks that no function panics, and that
// unpacking a packed message changes nothing.
func FuzzLayout(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 3, 0, 0, 0, 5}, uint8(20), int64(3), int64(2), int64(4), uint8(1), uint8(5))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 1}, uint8(4), int64(1<<62), int64(1<<62), int64(0), uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, numbers []byte, length uint8, count, block, stride int64, from, to uint8) {
		var blocks []datatype.Block
		for ; len(numbers) >= 5; numbers = numbers[5:] {
			blocks = append(blocks, datatype.Block{At: int(int32(binary.BigEndian.Uint32(numbers))), Len: int(int8(numbers[4]))})
		}
		for _, form := range []func(s []int32) datatype.Buffer{
			func(s []int32) datatype.Buffer { return datatype.Indexed(s, blocks) },
			func(s []int32) datatype.Buffer { return datatype.Strided(s, int(count), int(block), int(stride)) },
		} {
			s := make([]int32, length)
			for i := range s {
				s[i] = int32(i)
			}
			b := form(s).Slice(int(from), int(to))
			if b.Err() != nil {
				require.ErrorIs(t, b.Err(), datatype.ErrLayout)
				continue
			}
			require.Equal(t, int(to)-int(from), b.Count())
			wire := make([]byte, b.Size())
			require.Equal(t, len(wire), b.Pack(wire))
			require.Equal(t, len(wire), b.Unpack(wire))
			for i := range s {
				require.Equal(t, int32(i), s[i])
			}
			clear(s)
			require.Equal(t, len(wire), b.Unpack(wire))
			again := make([]byte, b.Size())
			b.Pack(again)
			require.Equal(t, wire, again)
			_ = b.Describe()
		}
	})
}

// FuzzUnpack unpacks arbitrary messages of any length into structs.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte("a message that is not long enough for two of them"), uint8(2))
	f.Fuzz(func(t *testing.T, wire []byte, n uint8) {
		type element struct {
			A uint8
			B uint32
			C [3]uint16
			D uint64
		}
		const size = 1 + 4 + 6 + 8
		b := datatype.Structs(make([]element, n))
		got := b.Unpack(wire)
		require.Equal(t, min(len(wire), int(n)*size), got)
		again := make([]byte, got)
		require.Equal(t, got, b.Pack(again))
		require.Equal(t, string(wire[:got]), string(again))
	})
}
