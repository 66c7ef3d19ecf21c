package isosurface

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func newVolume(t require.TestingT, spec Spec) *Volume {
	v, err := NewVolume(spec)
	require.NoError(t, err)
	return v
}

func drawSpec(rt *rapid.T) (s Spec) {
	s = Spec{Seed: rapid.Uint64().Draw(rt, "seed"), Blobs: rapid.IntRange(0, 8).Draw(rt, "blobs")}
	for i := range s.Dims {
		s.Dims[i] = rapid.IntRange(2, 18).Draw(rt, "dim")
	}
	return s
}

// A volume has the sum of its blobs.
func TestVolumeHoldsTheBlobs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		spec := drawSpec(rt)
		v := newVolume(rt, spec)
		require.Equal(rt, spec.Dims, v.Dims())
		plane := make([]byte, spec.Dims[0]*spec.Dims[1])
		for z := range spec.Dims[2] {
			require.NoError(rt, v.readPlane(plane, z))
			for i, got := range plane {
				sum := 0
				for _, b := range spec.makeBlobs() {
					dx, dy, dz := i%spec.Dims[0]-b.at[0], i/spec.Dims[0]-b.at[1], z-b.at[2]
					if d, rr := dx*dx+dy*dy+dz*dz, b.radius*b.radius; d < rr {
						near := (rr - d) * 256 / rr
						sum += b.weight * near * near >> 16
					}
				}
				require.EqualValues(rt, min(sum, 255), got)
			}
		}
	})
}

func TestSpecFor(t *testing.T) {
	require.Equal(t, [3]int{64, 64, 64}, SpecFor(1<<18).Dims)
	require.Equal(t, [3]int{63, 63, 63}, SpecFor(1<<18-1).Dims)
	require.Equal(t, [3]int{2, 2, 2}, SpecFor(0).Dims)
	require.ErrorContains(t, Generate(new(bytes.Buffer), Spec{Dims: [3]int{1, 5, 5}}), "want 2 to 32768 in each direction")
}

func volumeFile(t testing.TB) []byte {
	var b bytes.Buffer
	require.NoError(t, Generate(&b, Spec{Dims: [3]int{4, 5, 6}, Blobs: 2}))
	return b.Bytes()
}

func open(b []byte) (*Volume, error) { return Open(bytes.NewReader(b), int64(len(b))) }

func TestFilesThatAreNoVolumes(t *testing.T) {
	good := volumeFile(t)
	for says, change := range map[string]func(b []byte) []byte{
		"23 bytes: no header":          func(b []byte) []byte { return b[:23] },
		"bad magic in header":          func(b []byte) []byte { b[0]++; return b },
		"header":                       func(b []byte) []byte { b[23]++; return b },
		"[1 5 6] samples: want":        func(b []byte) []byte { b[11] = 1; return b },
		"[4 32769 6] samples: want":    func(b []byte) []byte { b[12] = 255; return b },
		"[4 5 6] samples in 119 bytes": func(b []byte) []byte { return b[:len(b)-1] },
		"[32768 32768 32768] samples in 1": func(b []byte) []byte {
			for i := 8; i < 20; i += 4 {
				binary.BigEndian.PutUint32(b[i:], maxSide)
			}
			return b
		},
	} {
		_, err := open(change(slices.Clone(good)))
		require.ErrorIs(t, err, ErrVolume, says)
		require.ErrorContains(t, err, says)
	}
	_, err := open(good)
	require.NoError(t, err)
}

func FuzzOpen(f *testing.F) {
	f.Add(volumeFile(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := open(b)
		if err != nil {
			require.ErrorIs(t, err, ErrVolume)
			return
		}
		require.NoError(t, v.readPlane(make([]byte, v.dims[0]*v.dims[1]), v.dims[2]))
	})
}
