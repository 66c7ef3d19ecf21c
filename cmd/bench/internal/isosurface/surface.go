package isosurface

import "math/bits"

// A vertex is a corner of a triangle of the surface.
type vertex struct {
	at     [3]int32 // in 1/256 of the distance between samples
	normal [3]int16 // in the direction of decreasing samples, not of unit length
}

type triangle [3]vertex

// samples are the samples of a part of a volume, with one more on each side, and two more at
// the high ends, for the gradients.
type samples struct {
	data  []byte
	cells [3]int // cells of the part; there are three more samples in each direction

	on triangle // argument of the callback of extractSurface
}

func (s *samples) sampleIndex(x, y, z int) int {
	return ((z+1)*(s.cells[1]+3)+y+1)*(s.cells[0]+3) + x + 1
}

// extractSurface calls f with every triangle of the surface between samples below iso and the
// others. f must not keep the triangle. Positions are relative to the first cell of the part.
// The algorithm is marching cubes. A vertex depends only on the surrounding samples, so
// adjacent parts fit together.
func (s *samples) extractSurface(iso int, f func(*triangle)) {
	for z := range s.cells[2] {
		for y := range s.cells[1] {
			for x := range s.cells[0] {
				for _, on := range triangles[s.cellCase(x, y, z, iso)] {
					for i, e := range on {
						s.on[i] = s.edgeVertex(x, y, z, edges[e], iso)
					}
					f(&s.on)
				}
			}
		}
	}
}

// cellCase returns the case of a cell.
func (s *samples) cellCase(x, y, z, iso int) (corners int) {
	base := s.sampleIndex(x, y, z)
	dy, dz := s.cells[0]+3, (s.cells[0]+3)*(s.cells[1]+3)
	for c, i := range [8]int{base, base + 1, base + dy, base + dy + 1, base + dz, base + dz + 1, base + dz + dy, base + dz + dy + 1} {
		if int(s.data[i]) >= iso {
			corners |= 1 << c
		}
	}
	return corners
}

// edgeVertex returns the vertex where the surface cuts an edge of a cell. The threshold is
// halfway between two sample values, so that the vertex never coincides with a corner.
func (s *samples) edgeVertex(x, y, z int, e edge, iso int) (v vertex) {
	x, y, z = x+e.from&1, y+e.from>>1&1, z+e.from>>2
	strides := [3]int{1, s.cells[0] + 3, (s.cells[0] + 3) * (s.cells[1] + 3)}
	low := s.sampleIndex(x, y, z)
	high := low + strides[e.axis]
	a, b := int(s.data[low]), int(s.data[high])
	part := (2*iso - 1 - 2*a) * 128 / (b - a) // of 256
	v.at = [3]int32{int32(x) << 8, int32(y) << 8, int32(z) << 8}
	v.at[e.axis] += int32(part)
	for i, d := range strides {
		slope := (int(s.data[low+d])-int(s.data[low-d]))*(256-part) + (int(s.data[high+d])-int(s.data[high-d]))*part
		v.normal[i] = int16(-slope / 2)
	}
	return v
}

// Marching cubes. Corner c of a cube is at (c&1, c>>1&1, c>>2&1). A case is the set of corners
// inside the surface, one bit each.
//
// The table is computed from the cube. On each face the surface cuts off every run of adjacent
// corners that are inside. Two opposite inside corners of a face are cut off separately,
// independently of the cube from which the face is seen. So the cuts of adjacent cubes meet,
// and the surface has no holes. The cuts of the six faces form loops, and each loop is filled
// with triangles.

// An edge is a pair of adjacent corners, the lower first, and the axis of the edge.
type edge struct{ from, to, axis int }

var edges = makeEdges()

func makeEdges() (list [12]edge) {
	n := 0
	for axis := range 3 {
		for c := range 8 {
			if c>>axis&1 == 0 {
				list[n] = edge{c, c | 1<<axis, axis}
				n++
			}
		}
	}
	return list
}

// edgeOf returns the number of the edge between two corners.
func edgeOf(a, b int) int {
	for i, e := range edges {
		if e.from == min(a, b) && e.to == max(a, b) {
			return i
		}
	}
	panic("isosurface: no edge")
}

// faces has the corners of the cube's faces, counterclockwise as seen from outside.
var faces = makeFaces()

func makeFaces() (list [6][4]int) {
	for axis := range 3 {
		u, v := 1<<((axis+1)%3), 1<<((axis+2)%3)
		list[2*axis] = [4]int{0, v, u | v, u}
		high := 1 << axis
		list[2*axis+1] = [4]int{high, high | u, high | u | v, high | v}
	}
	return list
}

// triangles has the triangles of each case: the three edges on which their corners lie,
// counterclockwise as seen from outside the surface.
var triangles = makeTriangles()

func makeTriangles() (table [256][][3]int) {
	for inside := range table {
		for _, loop := range cutLoops(inside) {
			table[inside] = append(table[inside], fillLoop(loop)...)
		}
	}
	return table
}

// cutLoops returns the edges cut by the surface of a case, in the order in which the cuts of
// the faces connect them.
func cutLoops(inside int) (list [][]int) {
	in := func(c int) bool { return inside>>c&1 == 1 }
	next := make(map[int]int)
	for _, face := range faces {
		for i, c := range face {
			if !in(c) || in(face[(i+1)%4]) {
				continue
			}
			// The run of inside corners ends at c. Find its start.
			first := i
			for in(face[(first+3)%4]) {
				first = (first + 3) % 4
			}
			next[edgeOf(face[(first+3)%4], face[first])] = edgeOf(c, face[(i+1)%4])
		}
	}
	for start := range edges {
		var loop []int
		for at, ok := next[start]; ok; at, ok = next[at] {
			delete(next, start)
			loop, start = append(loop, at), at
		}
		if loop != nil {
			list = append(list, loop)
		}
	}
	return list
}

// fillLoop fills a loop with triangles around one of its points. This point must share a face
// only with its neighbours, because the side of a triangle in a face could touch a triangle of
// the adjacent cube. Every loop has such a point.
func fillLoop(loop []int) (list [][3]int) {
	n := len(loop)
	apex := 0
	for i := 2; i < n-1; i++ {
		if sameFace(loop[apex], loop[(apex+i)%n]) {
			apex, i = apex+1, 1
		}
	}
	for i := 1; i < n-1; i++ {
		list = append(list, [3]int{loop[apex], loop[(apex+i)%n], loop[(apex+i+1)%n]})
	}
	return list
}

// sameFace reports whether two edges are on a common face: whether all their corners share a
// coordinate.
func sameFace(a, b int) bool {
	and := edges[a].from & edges[a].to & edges[b].from & edges[b].to
	or := edges[a].from | edges[a].to | edges[b].from | edges[b].to
	return bits.OnesCount(uint(and|^or&7)) > 0
}
