package isosurface

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The table has the known properties of tables without holes: 820 triangles, at most 5 for each
// case, which use every cut edge and no other.
func TestTable(t *testing.T) {
	total := 0
	for inside, list := range triangles {
		total += len(list)
		require.LessOrEqual(t, len(list), 5)
		var used [12]bool
		for _, on := range list {
			for _, e := range on {
				used[e] = true
			}
		}
		for i, e := range edges {
			require.Equal(t, inside>>e.from&1 != inside>>e.to&1, used[i], "case %08b, edge %d", inside, i)
		}
	}
	require.Equal(t, 820, total)
	// One corner inside, at the origin: counterclockwise as seen from outside.
	require.Equal(t, [][3]int{{edgeOf(0, 2), edgeOf(0, 4), edgeOf(0, 1)}}, triangles[1])
}

// A side of a triangle lies in a face of the cube only where the surface leaves the cube, so
// that no triangle of the adjacent cube can touch it.
func TestTrianglesStayInside(t *testing.T) {
	for inside := range triangles {
		for _, loop := range cutLoops(inside) {
			outline := make(map[[2]int]bool)
			for i, e := range loop {
				next := loop[(i+1)%len(loop)]
				require.True(t, sameFace(e, next))
				outline[[2]int{e, next}] = true
			}
			for _, on := range fillLoop(loop) {
				for i, e := range on {
					next := on[(i+1)%3]
					require.Equal(t, outline[[2]int{e, next}], sameFace(e, next), "case %08b", inside)
				}
			}
		}
	}
}

// whole returns a field as one part, extended at its edge.
func whole(dims [3]int, at func(x, y, z int) byte) *samples {
	s := &samples{cells: [3]int{dims[0] - 1, dims[1] - 1, dims[2] - 1}}
	clamp := func(i, n int) int { return min(max(i, 0), n-1) }
	for z := -1; z <= dims[2]; z++ {
		for y := -1; y <= dims[1]; y++ {
			for x := -1; x <= dims[0]; x++ {
				s.data = append(s.data, at(clamp(x, dims[0]), clamp(y, dims[1]), clamp(z, dims[2])))
			}
		}
	}
	return s
}

// A surface that does not reach the edge of the field is closed: every side of a triangle is
// the reversed side of another.
func TestSurfacesAreClosed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dims := [3]int{rapid.IntRange(3, 8).Draw(rt, "x"), rapid.IntRange(3, 8).Draw(rt, "y"), rapid.IntRange(3, 8).Draw(rt, "z")}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		s := whole(dims, func(x, y, z int) byte { return 0 })
		for z := 1; z < dims[2]-1; z++ {
			for y := 1; y < dims[1]-1; y++ {
				for x := 1; x < dims[0]-1; x++ {
					s.data[s.sampleIndex(x, y, z)] = byte(random.IntN(256))
				}
			}
		}
		balance := make(map[[2][3]int32]int)
		s.extractSurface(rapid.IntRange(1, 255).Draw(rt, "iso"), func(on *triangle) {
			for i := range on {
				a, b := on[i].at, on[(i+1)%3].at
				balance[[2][3]int32{a, b}]++
				balance[[2][3]int32{b, a}]--
			}
		})
		for side, n := range balance {
			require.Zero(rt, n, "%v", side)
		}
	})
}

// A ball has the area, volume, normals and topology of a sphere.
func TestBall(t *testing.T) {
	const n, radius, iso = 40, 15, 128
	dims := [3]int{n, n, n}
	s := whole(dims, func(x, y, z int) byte {
		d := math.Sqrt(float64((x-20)*(x-20) + (y-20)*(y-20) + (z-20)*(z-20)))
		return byte(min(max(iso-0.5+8*(radius-d), 0), 255))
	})
	var area, volume float64
	faces, sides, vertices := 0, make(map[[2][3]int32]bool), make(map[[3]int32]bool)
	s.extractSurface(iso, func(on *triangle) {
		faces++
		var p [3][3]float64
		for i := range on {
			for j, c := range on[i].at {
				p[i][j] = float64(c)/256 - 20
			}
			vertices[on[i].at] = true
			a, b := on[i].at, on[(i+1)%3].at
			if !sides[[2][3]int32{b, a}] {
				sides[[2][3]int32{a, b}] = true
			}
			// The normal is the direction from the centre.
			normal := [3]float64{float64(on[i].normal[0]), float64(on[i].normal[1]), float64(on[i].normal[2])}
			require.InDelta(t, 1, dot(normal, p[i])/math.Sqrt(dot(normal, normal)*dot(p[i], p[i])), 0.02)
			require.InDelta(t, radius, math.Sqrt(dot(p[i], p[i])), 0.2)
		}
		c := cross(sub(p[1], p[0]), sub(p[2], p[0]))
		area += math.Sqrt(dot(c, c)) / 2
		volume += dot(p[0], c) / 6 // positive as seen from outside
	})
	require.Equal(t, 2, len(vertices)-len(sides)+faces, "Euler's characteristic")
	require.InEpsilon(t, 4*math.Pi*radius*radius, area, 0.02)
	require.InEpsilon(t, 4.0/3*math.Pi*radius*radius*radius, volume, 0.02)
}

func dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func sub(a, b [3]float64) [3]float64 { return [3]float64{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

func cross(a, b [3]float64) [3]float64 {
	return [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}
