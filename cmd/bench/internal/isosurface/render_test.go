package isosurface

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drawQuery(rt *rapid.T) Query {
	q := Query{Iso: rapid.IntRange(1, 255).Draw(rt, "iso"), Size: rapid.IntRange(1, 80).Draw(rt, "size")}
	for i := range q.Rotation {
		q.Rotation[i] = rapid.IntRange(-maxTurn, maxTurn).Draw(rt, "rotation")
	}
	require.NoError(rt, q.setDefaults())
	return q
}

// Integer arithmetic agrees with floating point, and the volume is visible.
func TestProjection(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := drawQuery(rt)
		q.Size = rapid.IntRange(1, maxSize).Draw(rt, "size")
		dims := [3]int{}
		at := [3]int32{}
		for i := range dims {
			dims[i] = rapid.IntRange(2, maxSide).Draw(rt, "dim")
			at[i] = rapid.Int32Range(0, int32(dims[i]-1)<<8).Draw(rt, "at")
		}
		p := q.newProjection(dims)
		got := p.projectVertex(at, [3]int16{1, 2, 3})

		var v [3]float64
		diagonal := 0.0
		for i, n := range dims {
			v[i] = float64(at[i])/256 - float64(n-1)/2
			diagonal += float64(n-1) * float64(n-1)
		}
		across := math.Floor(math.Sqrt(diagonal)) + 1
		length := 0.0
		for _, n := range q.Rotation {
			length += float64(n) * float64(n)
		}
		w, u := float64(q.Rotation[0]), [3]float64{float64(q.Rotation[1]), float64(q.Rotation[2]), float64(q.Rotation[3])}
		// q v q*, by Rodrigues.
		uv := cross(u, v)
		uuv := cross(u, uv)
		scale := float64(q.Size) * subpixel / across
		for i, is := range []int64{got.x, got.y} {
			want := scale*(v[i]+2*(w*uv[i]+uuv[i])/length) + float64(q.Size)*subpixel/2
			require.InDelta(rt, want, float64(is), 1)
			require.GreaterOrEqual(rt, is, int64(0))
			require.LessOrEqual(rt, is, int64(q.Size)*subpixel)
		}
		require.InDelta(rt, (v[2]+2*(w*uv[2]+uuv[2])/length)/across+0.5, float64(got.depth)/(1<<depthBits), 1e-6)
		require.GreaterOrEqual(rt, got.depth, int64(0))
		require.LessOrEqual(rt, got.depth, int64(1)<<depthBits)
	})
}

func TestShade(t *testing.T) {
	lit := shadeColor([3]int64{-100, -200, -200}) // towards the light
	require.Equal(t, [3]int64{255, 250, 168}, lit)
	dark := shadeColor([3]int64{300, 300, -1}) // towards the viewer, away from the light
	require.Equal(t, [3]int64{61, 38, 15}, dark)
	require.Equal(t, dark, shadeColor([3]int64{}), "no slope, no light")
	inside := shadeColor([3]int64{0, 0, 5})
	require.Greater(t, inside[2], inside[0], "blue")
	for _, n := range [][3]int64{{1 << 28, 1 << 28, -1 << 28}, {-1 << 28, 1, 1}, {0, 0, -1}, {3, -4, 5}} {
		for _, c := range shadeColor(n) {
			require.True(t, 0 <= c && c <= 255)
		}
	}
}

func TestSquareRoot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Uint64Range(0, 1<<62).Draw(rt, "n")
		r := intSqrt(n)
		require.LessOrEqual(rt, r*r, n)
		require.Greater(rt, (r+1)*(r+1), n)
	})
	require.Equal(t, []int64{-2, -1, -1, 0, 0, 1}, []int64{floorDiv(-4, 3), floorDiv(-3, 3), floorDiv(-1, 3), floorDiv(0, 3), floorDiv(2, 3), floorDiv(3, 3)})
}

// A pixel is drawn if its centre is in the triangle, for either orientation of the triangle,
// with a depth and colours between those of the corners.
func TestRasterizer(t *testing.T) {
	const size = 20
	rapid.Check(t, func(rt *rapid.T) {
		var on [3]point
		for i := range on {
			on[i] = point{x: rapid.Int64Range(0, size*subpixel).Draw(rt, "x"), y: rapid.Int64Range(0, size*subpixel).Draw(rt, "y"),
				depth: rapid.Int64Range(0, 1<<depthBits).Draw(rt, "depth")}
			for c := range on[i].color {
				on[i].color[c] = rapid.Int64Range(0, 255).Draw(rt, "color")
			}
		}
		got, again := newFrame(size), newFrame(size)
		r := rasterizer{size: size}
		rows := 0
		require.NoError(rt, r.drawTriangle(&on, func(x, y int, run []pixel) error {
			got.mergeRun(x, y, run)
			rows++
			return nil
		}))
		require.LessOrEqual(rt, rows, size, "one run a row")
		on[1], on[2] = on[2], on[1]
		require.NoError(rt, r.drawTriangle(&on, func(x, y int, run []pixel) error {
			again.mergeRun(x, y, run)
			return nil
		}))
		require.Equal(rt, got, again)
		for y := range int64(size) {
			for x := range int64(size) {
				p := got.pixels[y*size+x]
				require.Equal(rt, covers(on, x*subpixel+subpixel/2, y*subpixel+subpixel/2), p != background, "%d, %d", x, y)
				if p == background {
					continue
				}
				low, high := corners(on, func(c point) int64 { return c.depth })
				require.True(rt, low <= int64(p>>24) && int64(p>>24) <= high)
				for c := range 3 {
					low, high := corners(on, func(p point) int64 { return p.color[c] })
					is := int64(p >> (16 - 8*c) & 255)
					require.True(rt, low <= is && is <= high)
				}
			}
		}
	})
}

// covers reports whether a point is on the same side of all three lines.
func covers(on [3]point, x, y int64) bool {
	left, right, area := 0, 0, int64(0)
	for i, a := range on {
		b := on[(i+1)%3]
		side := (b.x-a.x)*(y-a.y) - (b.y-a.y)*(x-a.x)
		if side > 0 {
			left++
		}
		if side < 0 {
			right++
		}
		area += a.x*b.y - b.x*a.y
	}
	return area != 0 && (left == 0 || right == 0)
}

func corners(on [3]point, of func(point) int64) (low, high int64) {
	return min(of(on[0]), of(on[1]), of(on[2])), max(of(on[0]), of(on[1]), of(on[2]))
}

// The order of merging pixels does not matter.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type run struct {
			x, y   int
			pixels []pixel
		}
		var runs []run
		for range rapid.IntRange(0, 20).Draw(rt, "runs") {
			r := run{x: rapid.IntRange(0, 5).Draw(rt, "x"), y: rapid.IntRange(0, 7).Draw(rt, "y")}
			for range rapid.IntRange(1, 8-r.x).Draw(rt, "n") {
				r.pixels = append(r.pixels, pixel(rapid.Uint64Range(0, 3<<24).Draw(rt, "pixel")))
			}
			runs = append(runs, r)
		}
		one := newFrame(8)
		for _, r := range runs {
			one.mergeRun(r.x, r.y, r.pixels)
		}
		parts := []*frame{newFrame(8), newFrame(8)}
		for _, r := range rapid.Permutation(slices.Clone(runs)).Draw(rt, "order") {
			to := parts[rapid.IntRange(0, 1).Draw(rt, "part")]
			require.NoError(rt, to.putRuns(appendRun(nil, r.x, r.y, r.pixels)))
		}
		parts[0].mergeFrame(parts[1])
		require.Equal(rt, one, parts[0])
	})
}
