package microscope

import (
	"fmt"
	"image"

	"github.com/klauspost/compress/zstd"
)

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
