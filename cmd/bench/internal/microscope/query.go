package microscope

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"github.com/klauspost/compress/zstd"
)

// ErrQuery is wrapped by errors of invalid queries.
var ErrQuery = errors.New("microscope: bad query")

// A Query selects a region and a magnification.
type Query struct {
	Region image.Rectangle // in pixels of level 0, clipped to the slide
	Zoom   int             // pixels of level 0 for one image pixel, in each direction; at least 1
}

// maxFactor is the maximum number of level pixels for one image pixel in each direction: their
// sum has 16 bits.
const maxFactor = 16

// A view is a query, or a band of it, in terms of one level. Its pixel (x, y) is the mean of
// the factor by factor pixels of the level from rect.Min + factor*(x, y), clipped to rect.
type view struct {
	level, factor int
	rect          image.Rectangle // in pixels of the level
	top           int             // first image row of the band
}

// selectView returns the view of a query on the smallest level whose pixels can be combined to
// those of the image.
func (s *Slide) selectView(q Query) (v view, err error) {
	region := q.Region.Intersect(s.Bounds())
	if region.Empty() || q.Zoom < 1 {
		return v, fmt.Errorf("%w: region %v with zoom %d on a slide of %v", ErrQuery, q.Region, q.Zoom, s.Bounds())
	}
	divisible := func(l int) bool {
		mask := 1<<l - 1
		return q.Zoom&mask == 0 && region.Min.X&mask == 0 && region.Min.Y&mask == 0
	}
	for v.level+1 < s.Levels() && divisible(v.level+1) {
		v.level++
	}
	v.factor = q.Zoom >> v.level
	if v.factor > maxFactor {
		return v, fmt.Errorf("%w: zoom %d: %d times that of level %d, want at most %d; use a zoom and a region corner divisible by a power of two, or a slide with more levels",
			ErrQuery, q.Zoom, v.factor, v.level, maxFactor)
	}
	one := 1 << v.level
	v.rect = image.Rect(region.Min.X/one, region.Min.Y/one, ceilDiv(region.Max.X, one), ceilDiv(region.Max.Y, one))
	return v, nil
}

// imageSize returns the size of the view's image.
func (v view) imageSize() image.Point {
	return image.Pt(ceilDiv(v.rect.Dx(), v.factor), ceilDiv(v.rect.Dy(), v.factor))
}

// splitBands splits a view into at most n bands of about the same height.
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

// pixelCount returns the number of level pixels that contribute to pixel (x, y).
func (v view) pixelCount(x, y int) int {
	return min(v.factor, v.rect.Dx()-x*v.factor) * min(v.factor, v.rect.Dy()-y*v.factor)
}

const viewLen = 7 * 4

// appendTo appends the view as the query of a work.
func (v view) appendTo(b []byte) []byte {
	for _, n := range []int{v.level, v.factor, v.rect.Min.X, v.rect.Min.Y, v.rect.Max.X, v.rect.Max.Y, v.top} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// parseView parses the encoding of appendTo. Both sides run the same job, so other content
// cannot occur.
func parseView(b []byte) (v view, err error) {
	if len(b) != viewLen {
		return v, fmt.Errorf("%w: %d bytes", ErrQuery, len(b))
	}
	n := func(i int) int { return int(binary.BigEndian.Uint32(b[4*i:])) }
	return view{level: n(0), factor: n(1), rect: image.Rect(n(2), n(3), n(4), n(5)), top: n(6)}, nil
}

// Reference computes the image of a query for comparison, without filters, streams and units.
func Reference(s *Slide, q Query) (*image.NRGBA, error) {
	v, err := s.selectView(q)
	if err != nil {
		return nil, err
	}
	level, err := s.decompressLevel(v.level)
	if err != nil {
		return nil, err
	}
	picture := image.NewNRGBA(image.Rectangle{Max: v.imageSize()})
	for y := range picture.Rect.Dy() {
		for x := range picture.Rect.Dx() {
			corner := v.rect.Min.Add(image.Pt(x*v.factor, y*v.factor))
			mean := level.meanColor(image.Rectangle{corner, corner.Add(image.Pt(v.factor, v.factor))}.Intersect(v.rect))
			copy(picture.Pix[picture.PixOffset(x, y):], mean[:])
		}
	}
	return picture, nil
}

// meanColor returns the rounded mean colour of a rectangle.
func (r *raster) meanColor(rect image.Rectangle) [4]byte {
	var sum [3]int
	for y := rect.Min.Y; y < rect.Max.Y; y++ {
		for x := rect.Min.X; x < rect.Max.X; x++ {
			for c := range sum {
				sum[c] += int(r.pixelRow(y)[3*x+c])
			}
		}
	}
	n := rect.Dx() * rect.Dy()
	half := n / 2
	return [4]byte{byte((sum[0] + half) / n), byte((sum[1] + half) / n), byte((sum[2] + half) / n), 255}
}

// decompressLevel returns a complete level.
func (s *Slide) decompressLevel(level int) (*raster, error) {
	zip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer zip.Close()
	size, tiles := s.levelSize(level), s.tileGrid(level)
	r := newRaster(size.X, size.Y)
	for ty := range tiles.Y {
		for tx := range tiles.X {
			packed, err := s.appendTile(nil, level, tx, ty)
			if err != nil {
				return nil, err
			}
			rgb, err := zip.DecodeAll(packed, nil)
			at := s.tileRect(level, tx, ty)
			if err != nil || len(rgb) != 3*at.Dx()*at.Dy() {
				return nil, fmt.Errorf("%w: tile %d, %d of level %d: %d bytes of pixels: %w", ErrSlide, tx, ty, level, len(rgb), err)
			}
			for y := at.Min.Y; y < at.Max.Y; y++ {
				copy(r.pixelRow(y)[3*at.Min.X:], rgb[:3*at.Dx()])
				rgb = rgb[3*at.Dx():]
			}
		}
	}
	return r, nil
}
