package isosurface

import "math/bits"

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
