package wire_test

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// randomBytes returns n bytes that depend on n only.
func randomBytes(n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestCRCAgainstStandard compares every implementation with hash/crc32, for every length at every
// offset, from random registers.
func TestCRCAgainstStandard(t *testing.T) {
	const maxLen, offsets = 1100, 64
	b := randomBytes(maxLen + offsets)
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range maxLen + 1 {
		for offset := range offsets {
			p, reg := b[offset:offset+n], rng.Uint32()
			want := ^crc32.Update(^reg, crc32.IEEETable, p)
			for _, way := range wire.CRCWays {
				if got := way.Update(reg, p); got != want {
					t.Fatalf("%s, length %d, offset %d, register %#x: %#x, not %#x", way.Name, n, offset, reg, got, want)
				}
			}
		}
	}
}

// TestCRCAgainstModel compares every implementation with the bit-by-bit model. The model's initial
// register is fixed, but four bytes before the input lead to any register.
func TestCRCAgainstModel(t *testing.T) {
	b := randomBytes(1100 + 64)
	rng := rand.New(rand.NewPCG(2, 2))
	for n := 4; n <= 1100; n++ {
		offset := rng.IntN(64)
		p := b[offset : offset+n]
		for i := range 4 {
			p[i] = byte(rng.Uint32())
		}
		reg, want := ^slowCRC32(p[:4]), ^slowCRC32(p)
		for _, way := range wire.CRCWays {
			require.Equal(t, want, way.Update(reg, p[4:]), "%s, length %d, offset %d, register %#x", way.Name, n-4, offset+4, reg)
		}
	}
}

// TestCRCOfLongInputs tests full packets with their headers, jumbo frames, and the longest
// datagram.
func TestCRCOfLongInputs(t *testing.T) {
	b := randomBytes(65507)
	for _, n := range []int{2048, 4096, 4100, 4112, 4128, 9000, 9037, 65507} {
		want := ^crc32.Update(^uint32(7), crc32.IEEETable, b[:n])
		for _, way := range wire.CRCWays {
			require.Equal(t, want, way.Update(7, b[:n]), "%s, length %d", way.Name, n)
		}
	}
}

// TestCRCInParts checks that hashing two parts equals hashing both at once, for every division.
func TestCRCInParts(t *testing.T) {
	b := randomBytes(700)
	for _, way := range wire.CRCWays {
		want := way.Update(3, b)
		for cut := range len(b) + 1 {
			require.Equal(t, want, way.Update(way.Update(3, b[:cut]), b[cut:]), "%s, cut at %d", way.Name, cut)
		}
	}
}

func TestCRCAllocatesNothing(t *testing.T) {
	b := randomBytes(4112)
	require.Zero(t, testing.AllocsPerRun(10, func() { wire.CRCWays[0].Update(0, b) }))
}

// FuzzCRC compares every implementation with the bit-by-bit model.
func FuzzCRC(f *testing.F) {
	for _, n := range []int{0, 3, 4, 15, 16, 60, 64, 68, 128, 256, 260, 1029} {
		f.Add(uint32(n), randomBytes(n), uint8(n))
	}
	f.Fuzz(func(t *testing.T, front uint32, p []byte, offset uint8) {
		lead := []byte{byte(front), byte(front >> 8), byte(front >> 16), byte(front >> 24)}
		reg, want := ^slowCRC32(lead), ^slowCRC32(append(lead, p...))
		moved := append(make([]byte, offset), p...)[offset:]
		for _, way := range wire.CRCWays {
			require.Equal(t, want, way.Update(reg, moved), way.Name)
		}
	})
}

// BenchmarkCRCUpdate compares the implementations at the lengths of packets.
func BenchmarkCRCUpdate(b *testing.B) {
	for _, n := range []int{8, 16, 24, 64, 256, 1024, 4096 + 16} {
		p := randomBytes(n)
		for _, way := range wire.CRCWays {
			b.Run(fmt.Sprintf("%d/%s", n, way.Name), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					way.Update(1, p)
				}
			})
		}
	}
}
