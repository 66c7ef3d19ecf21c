package isosurface

import (
	"errors"
	"fmt"
	"math/bits"
)

// ErrQuery is wrapped by errors of invalid queries.
var ErrQuery = errors.New("isosurface: bad query")

// A Query selects a surface and the direction of view.
type Query struct {
	Iso int // smallest sample value inside the surface, 1 to 255; 0 means 100

	// Rotation rotates the volume. It is a quaternion (w, x, y, z) of integers from -30 to 30,
	// of any length. Zero is a view from the side and above.
	Rotation [4]int

	Size int // edge of the square image in pixels, up to 4096; 0 means 512
}

const (
	maxTurn = 30
	maxSize = 4096
)

// setDefaults sets the defaults and validates the query.
func (q *Query) setDefaults() error {
	if q.Iso == 0 {
		q.Iso = 100
	}
	if q.Rotation == [4]int{} {
		q.Rotation = [4]int{8, -3, 4, 1}
	}
	if q.Size == 0 {
		q.Size = 512
	}
	ok := 0 < q.Iso && q.Iso < 256 && 0 < q.Size && q.Size <= maxSize
	for _, n := range q.Rotation {
		ok = ok && -maxTurn <= n && n <= maxTurn
	}
	if !ok {
		return fmt.Errorf("%w: %+v", ErrQuery, *q)
	}
	return nil
}

// A projection maps points of a volume to the image orthographically: z into the image, y down,
// with the whole volume visible in any rotation. It uses integer arithmetic, so that the result
// is the same on every machine: the matrix of the quaternion times its squared length has
// integer elements.
type projection struct {
	turn   [3][3]int64
	length int64 // length of a rotated vector relative to the vector
	centre [3]int64
	across int64 // diagonal of the volume, in units of a doubled position
	size   int64 // image size in pixels
}

func (q Query) newProjection(dims [3]int) projection {
	w, x, y, z := int64(q.Rotation[0]), int64(q.Rotation[1]), int64(q.Rotation[2]), int64(q.Rotation[3])
	p := projection{
		turn: [3][3]int64{
			{w*w + x*x - y*y - z*z, 2 * (x*y - w*z), 2 * (x*z + w*y)},
			{2 * (x*y + w*z), w*w - x*x + y*y - z*z, 2 * (y*z - w*x)},
			{2 * (x*z - w*y), 2 * (y*z + w*x), w*w - x*x - y*y + z*z},
		},
		length: w*w + x*x + y*y + z*z,
		size:   int64(q.Size),
	}
	var diagonal uint64
	for i, n := range dims {
		p.centre[i] = int64(n-1) << 8
		diagonal += uint64(n-1) * uint64(n-1)
	}
	p.across = int64(intSqrt(diagonal)+1) << 9
	return p
}

func (p *projection) rotateVector(v [3]int64) (r [3]int64) {
	for i, row := range p.turn {
		r[i] = row[0]*v[0] + row[1]*v[1] + row[2]*v[2]
	}
	return r
}

// A point is a projected vertex.
type point struct {
	x, y  int64 // in 1/16 of a pixel, 0 to 16 times the image size
	depth int64 // from 0 (near) to 2^22
	color [3]int64
}

const (
	depthBits = 22
	subpixel  = 16
)

// projectVertex projects and shades a vertex at a position in the volume.
func (p *projection) projectVertex(at [3]int32, normal [3]int16) (out point) {
	var c [3]int64
	for i, n := range at {
		c[i] = 2*int64(n) - p.centre[i]
	}
	c = p.rotateVector(c)
	d := p.length * p.across
	out.x = p.size*subpixel/2 + floorDiv(c[0]*p.size*subpixel, d)
	out.y = p.size*subpixel/2 + floorDiv(c[1]*p.size*subpixel, d)
	out.depth = 1<<(depthBits-1) + floorDiv(c[2]<<depthBits, d)
	out.color = shadeColor(p.rotateVector([3]int64{int64(normal[0]), int64(normal[1]), int64(normal[2])}))
	return out
}

// Colours of the surface from outside and inside, and the direction to the light, whose length
// is 3.
var (
	outer = [3]int64{226, 140, 58}
	inner = [3]int64{80, 112, 160}
	light = [3]int64{-1, -2, -2}
)

// shadeColor returns the colour of a surface with normal n, seen along z.
func shadeColor(n [3]int64) (color [3]int64) {
	base := outer
	if n[2] > 0 { // facing away
		base = inner
		n = [3]int64{-n[0], -n[1], -n[2]}
	}
	length := int64(intSqrt(uint64(n[0]*n[0] + n[1]*n[1] + n[2]*n[2])))
	bright := int64(0) // 0 to 256
	if length > 0 {
		bright = max(0, (n[0]*light[0]+n[1]*light[1]+n[2]*light[2])*256/(3*length))
	}
	gloss := min(bright, 256)
	for range 4 { // 16th power
		gloss = gloss * gloss >> 8
	}
	for i := range color {
		color[i] = min(255, base[i]*(70+bright*186>>8)>>8+gloss*110>>8)
	}
	return color
}

// intSqrt returns the integer part of the square root.
func intSqrt(n uint64) (root uint64) {
	for bit := uint64(1) << (bits.Len64(n) / 2); bit > 0; bit >>= 1 {
		if r := root | bit; r*r <= n {
			root = r
		}
	}
	return root
}

// floorDiv returns a/b rounded down, for positive b.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
