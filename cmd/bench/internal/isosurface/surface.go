package isosurface

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
