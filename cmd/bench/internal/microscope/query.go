package microscope

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
)

// ErrQuery is wrapped by what a slide cannot show.
var ErrQuery = errors.New("microscope: bad query")

// Query is what to look at.
type Query struct {
	Region image.Rectangle // in pixels of level 0; what is outside of the slide is left out
	Zoom   int             // pixels of level 0 to one of the picture, in both directions; 1 or more
}

// maxFactor is how many pixels of a level, in both directions, one of the
// picture can be made of: their sum has 16 bits.
const maxFactor = 16

// view is a query, or a band of it, in terms of one level. Its pixel (x, y) is
// the mean of the factor by factor pixels of the level from
// rect.Min + factor*(x, y), as far as they are in rect.
type view struct {
	level, factor int
	rect          image.Rectangle // in pixels of the level
	top           int             // row of the picture where the band begins
}

// selectView finds the level for a query: the smallest whose pixels compose those
// of the picture.
func (s *Slide) selectView(q Query) (v view, err error) {
	region := q.Region.Intersect(s.Bounds())
	if region.Empty() || q.Zoom < 1 {
		return v, fmt.Errorf("%w: region %v with zoom %d of a slide of %v", ErrQuery, q.Region, q.Zoom, s.Bounds())
	}
	whole := func(l int) bool {
		mask := 1<<l - 1
		return q.Zoom&mask == 0 && region.Min.X&mask == 0 && region.Min.Y&mask == 0
	}
	for v.level+1 < s.Levels() && whole(v.level+1) {
		v.level++
	}
	v.factor = q.Zoom >> v.level
	if v.factor > maxFactor {
		return v, fmt.Errorf("%w: zoom %d is %d times that of level %d, at most %d: take one that a power of two divides, and so the region's corner, or a slide with more levels",
			ErrQuery, q.Zoom, v.factor, v.level, maxFactor)
	}
	one := 1 << v.level
	v.rect = image.Rect(region.Min.X/one, region.Min.Y/one, ceilDiv(region.Max.X, one), ceilDiv(region.Max.Y, one))
	return v, nil
}

// imageSize is that of the view's picture.
func (v view) imageSize() image.Point {
	return image.Pt(ceilDiv(v.rect.Dx(), v.factor), ceilDiv(v.rect.Dy(), v.factor))
}

// splitBands cuts a view into at most n of about the same height.
func (v view) splitBands(n int) (bands []view) {
	height := v.imageSize().Y
	n = min(n, height)
	for i := range n {
		from, to := i*height/n, (i+1)*height/n
		b := v
		b.top += from
		b.rect.Min.Y = v.rect.Min.Y + from*v.factor
		b.rect.Max.Y = min(v.rect.Min.Y+to*v.factor, v.rect.Max.Y)
		bands = append(bands, b)
	}
	return bands
}

// pixelCount is how many pixels of the level compose pixel (x, y).
func (v view) pixelCount(x, y int) int {
	return min(v.factor, v.rect.Dx()-x*v.factor) * min(v.factor, v.rect.Dy()-y*v.factor)
}

const viewLen = 7 * 4

// appendTo writes the view as a query of a work.
func (v view) appendTo(b []byte) []byte {
	for _, n := range []int{v.level, v.factor, v.rect.Min.X, v.rect.Min.Y, v.rect.Max.X, v.rect.Max.Y, v.top} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// parseView reads what append wrote. Both ends have the same job, so nothing
// else can come.
func parseView(b []byte) (v view, err error) {
	if len(b) != viewLen {
		return v, fmt.Errorf("%w: %d bytes", ErrQuery, len(b))
	}
	n := func(i int) int { return int(binary.BigEndian.Uint32(b[4*i:])) }
	return view{level: n(0), factor: n(1), rect: image.Rect(n(2), n(3), n(4), n(5)), top: n(6)}, nil
}
