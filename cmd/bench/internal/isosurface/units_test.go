package isosurface

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBlockFor(t *testing.T) {
	for _, c := range []struct{ unitSize, edge, bytes int }{{75, 0, 39}, {76, 1, 76}, {1024, 7, 1012}, {4096, 12, 3387}, {65536, 37, 64012}, {1 << 24, maxBlock, 2248103}} {
		require.Equal(t, c.edge, blockFor(c.unitSize))
		require.Equal(t, c.bytes, blockLen+(c.edge+3)*(c.edge+3)*(c.edge+3))
	}
}

// compare is an arbitrary order of triangles.
func compare(a, b triangle) int {
	for i := range a {
		if c := cmp.Or(slices.Compare(a[i].at[:], b[i].at[:]), slices.Compare(a[i].normal[:], b[i].normal[:])); c != 0 {
			return c
		}
	}
	return 0
}

// The surface does not depend on the division of a volume into blocks and units.
func TestBlocksFitTogether(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := newVolume(rt, drawSpec(rt))
		iso := rapid.IntRange(1, 255).Draw(rt, "iso")
		var want, got []triangle
		plane := make([]byte, v.dims[0]*v.dims[1])
		whole(v.dims, func(x, y, z int) byte {
			require.NoError(rt, v.readPlane(plane, z))
			return plane[y*v.dims[0]+x]
		}).extractSurface(iso, func(on *triangle) { want = append(want, *on) })

		edge := rapid.IntRange(1, 9).Draw(rt, "edge")
		l := layer{volume: v}
		cells := v.cellCounts()
		for z := 0; z < cells[2]; z += edge {
			require.NoError(rt, l.readPlanes(z, min(edge, cells[2]-z)))
			for y := 0; y < cells[1]; y += edge {
				for x := 0; x < cells[0]; x += edge {
					unit := l.appendBlock(nil, x, y, min(edge, cells[0]-x), min(edge, cells[1]-y))
					at, part, err := parseBlock(unit, v.dims)
					require.NoError(rt, err)
					require.Equal(rt, [3]int{x, y, z}, at)
					mesh := slices.Clone(unit[:originLen])
					part.extractSurface(iso, func(on *triangle) { mesh = appendTriangle(mesh, on) })
					var on triangle
					require.NoError(rt, eachTriangle(mesh, v.dims, &on, func() error {
						got = append(got, on)
						return nil
					}))
				}
			}
		}
		slices.SortFunc(want, compare)
		slices.SortFunc(got, compare)
		require.Equal(rt, want, got)
	})
}

func TestBadUnits(t *testing.T) {
	dims := [3]int{10, 10, 10}
	block := append([]byte{0, 1, 0, 2, 0, 3, 0, 1, 0, 1, 0, 1}, make([]byte, 64)...)
	_, _, err := parseBlock(block, dims)
	require.NoError(t, err)
	for says, change := range map[string]func(b []byte) []byte{
		"11 bytes of samples":                  func(b []byte) []byte { return b[:11] },
		"63 samples, want 64":                  func(b []byte) []byte { return b[:len(b)-1] },
		"block of [1 0 0] cells at":            func(b []byte) []byte { b[9], b[11] = 0, 0; return b },
		"block of [129 0 0] cells":             func(b []byte) []byte { b[7] = 129; return b },
		"block of [1 1 1] cells at [1 2 9] in": func(b []byte) []byte { b[5] = 9; return b },
		"at [65281 0 0] in a volume of [10 10": func(b []byte) []byte { b[0] = 255; return b },
	} {
		_, _, err := parseBlock(change(slices.Clone(block)), dims)
		require.ErrorIs(t, err, errUnit, says)
		require.ErrorContains(t, err, says)
	}
	none := func() error { return nil }
	require.ErrorContains(t, eachTriangle(make([]byte, 5), dims, new(triangle), none), "5 bytes of triangles")
	require.ErrorContains(t, eachTriangle(make([]byte, 41), dims, new(triangle), none), "41 bytes of triangles")
	mesh := make([]byte, originLen+triangleLen)
	require.NoError(t, eachTriangle(mesh, dims, new(triangle), none))
	mesh[1], mesh[originLen], mesh[originLen+1] = 8, 1, 1 // 8 and 257/256 of 9
	require.ErrorContains(t, eachTriangle(mesh, dims, new(triangle), none), "vertex at [2305 0 0] in a volume of [10 10 10] samples")
	for says, unit := range map[string][]byte{
		"run of pixels: 5 bytes":                     make([]byte, 5),
		"0 pixels at":                                appendRun(nil, 0, 0, nil),
		"2 pixels at (7, 0) in an image of size 8":   appendRun(nil, 7, 0, make([]pixel, 2)),
		"1 pixels at (0, 8) in an image of size 8":   appendRun(nil, 0, 8, make([]pixel, 1)),
		"2 pixels at (0, 0) in an image of size 8: ": appendRun(nil, 0, 0, make([]pixel, 2))[:17],
	} {
		err := newFrame(8).putRuns(unit)
		require.ErrorIs(t, err, errUnit, says)
		require.ErrorContains(t, err, says)
	}
}

// Arbitrary units result in an error, or in data within the bounds.
func FuzzUnits(f *testing.F) {
	f.Add(append([]byte{0, 1, 0, 2, 0, 3, 0, 1, 0, 1, 0, 1}, make([]byte, 64)...), byte(10), byte(10), byte(10))
	f.Add(make([]byte, originLen+triangleLen), byte(3), byte(4), byte(5))
	f.Add(appendRun(nil, 1, 2, make([]pixel, 3)), byte(8), byte(2), byte(2))
	f.Fuzz(func(t *testing.T, b []byte, x, y, z byte) {
		dims := [3]int{max(2, int(x)), max(2, int(y)), max(2, int(z))}
		if at, s, err := parseBlock(b, dims); err == nil {
			for i := range at {
				require.LessOrEqual(t, at[i]+s.cells[i], dims[i]-1)
			}
			s.extractSurface(128, func(on *triangle) {
				for i := range on {
					for j, p := range on[i].at {
						require.True(t, 0 <= p && int(p) <= s.cells[j]<<8)
					}
				}
			})
		}
		p := Query{Iso: 1, Rotation: [4]int{1, -2, 3, 4}, Size: int(z) + 1}.newProjection(dims)
		r := rasterizer{size: int64(z) + 1}
		picture := newFrame(int(z) + 1)
		var on triangle
		_ = eachTriangle(b, dims, &on, func() error {
			var points [3]point
			for i := range on {
				points[i] = p.projectVertex(on[i].at, on[i].normal)
			}
			return r.drawTriangle(&points, func(x, y int, run []pixel) error {
				return picture.putRuns(appendRun(nil, x, y, run))
			})
		})
		_ = picture.putRuns(b)
	})
}
