package microscope

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/softrnic/softrnic/datacutter"
)

// Names of the streams.
const (
	tiles  = "tiles"  // read to decompress: compressed tiles
	pixels = "pixels" // decompress to clip: pixels of tiles
	region = "region" // clip to zoom: pixels in the region
	grid   = "grid"   // zoom to view: sums for pixels of the image
)

// eachUnit calls f for every unit of an input, with the view of the work.
func eachUnit(w *datacutter.Work, in string, f func(v view, unit []byte) error) error {
	v, err := parseView(w.Query)
	if err != nil {
		return err
	}
	for unit, err := range w.In(in).Units() {
		if err == nil {
			err = f(v, unit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A reader reads the tiles that a view intersects. Its copies share the tiles.
type reader struct {
	slide *Slide
	unit  []byte
}

func (r *reader) Process(_ context.Context, w *datacutter.Work) error {
	v, err := parseView(w.Query)
	if err != nil {
		return err
	}
	edge, n := r.slide.edge, 0
	for y := v.rect.Min.Y / edge; y < ceilDiv(v.rect.Max.Y, edge); y++ {
		for x := v.rect.Min.X / edge; x < ceilDiv(v.rect.Max.X, edge); x++ {
			if n++; n%w.Copies != w.Copy {
				continue
			}
			at := r.slide.tileRect(v.level, x, y)
			r.unit = append(r.unit[:0], make([]byte, unitHeaderLen)...)
			putUnitHeader(r.unit, at, at.Dx()*at.Dy())
			if r.unit, err = r.slide.appendTile(r.unit, v.level, x, y); err != nil {
				return err
			}
			if err := w.Out(tiles).SendKey(uint64(n), r.unit); err != nil {
				return err
			}
		}
	}
	return nil
}

// A decompressor decompresses tiles.
type decompressor struct {
	slide *Slide
	zip   *zstd.Decoder
	unit  []byte
}

func newDecompressor(s *Slide) (*decompressor, error) {
	// The decoder refuses data larger than the size in the unit header.
	zip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
	return &decompressor{slide: s, zip: zip, unit: make([]byte, 0, unitHeaderLen+3*s.edge*s.edge)}, err
}

func (d *decompressor) Close() error {
	d.zip.Close()
	return nil
}

func (d *decompressor) Process(_ context.Context, w *datacutter.Work) error {
	return eachUnit(w, tiles, func(v view, unit []byte) error {
		at, n, packed, err := parseUnit(unit, image.Rectangle{Max: d.slide.levelSize(v.level)}, 0)
		if err != nil {
			return err
		}
		raw, err := d.decompressTile(at, packed)
		if err != nil {
			return err
		}
		putUnitHeader(raw, at, n)
		return w.Out(pixels).Send(raw)
	})
}

// decompressTile returns a unit with space for its header and the pixels of a tile.
func (d *decompressor) decompressTile(at image.Rectangle, packed []byte) ([]byte, error) {
	n := unitHeaderLen + 3*at.Dx()*at.Dy()
	if at.Dx() > d.slide.edge || at.Dy() > d.slide.edge {
		return nil, fmt.Errorf("%w: %v: larger than a tile", errUnit, at)
	}
	raw, err := d.zip.DecodeAll(packed, d.unit[:unitHeaderLen:n])
	if err != nil {
		return nil, fmt.Errorf("tile %v: %w", at, err)
	}
	if len(raw) != n {
		return nil, fmt.Errorf("tile %v: %w", at, io.ErrUnexpectedEOF)
	}
	return raw, nil
}

// A clipper drops the pixels outside of the region.
type clipper struct {
	slide *Slide
	unit  []byte
}

func (c *clipper) Process(_ context.Context, w *datacutter.Work) error {
	return eachUnit(w, pixels, func(v view, unit []byte) error {
		at, _, rgb, err := parseUnit(unit, image.Rectangle{Max: c.slide.levelSize(v.level)}, 3)
		if err != nil {
			return err
		}
		in := at.Intersect(v.rect)
		if in.Empty() {
			return nil
		}
		c.unit = append(c.unit[:0], make([]byte, unitHeaderLen)...)
		putUnitHeader(c.unit, in, in.Dx()*in.Dy())
		for y := in.Min.Y; y < in.Max.Y; y++ {
			row := rgb[3*at.Dx()*(y-at.Min.Y):]
			c.unit = append(c.unit, row[3*(in.Min.X-at.Min.X):3*(in.Max.X-at.Min.X)]...)
		}
		return w.Out(region).Send(c.unit)
	})
}

// A zoomer projects pixels onto the grid of the image. It sends the sum of the pixels of a grid
// point, 16 bits for each colour, or a single pixel unchanged. The viewer adds up the sums of
// several tiles.
type zoomer struct {
	unit []byte
	sums []uint16 // sums of a row of the grid
}

func (z *zoomer) Process(_ context.Context, w *datacutter.Work) error {
	return eachUnit(w, region, func(v view, unit []byte) error {
		at, n, rgb, err := parseUnit(unit, v.rect, 3)
		if err != nil {
			return err
		}
		from := at.Sub(v.rect.Min)
		to := image.Rect(from.Min.X/v.factor, from.Min.Y/v.factor, ceilDiv(from.Max.X, v.factor), ceilDiv(from.Max.Y, v.factor))
		z.unit = append(z.unit[:0], make([]byte, unitHeaderLen)...)
		putUnitHeader(z.unit, to, n)
		if v.factor == 1 {
			z.unit = append(z.unit, rgb...)
		} else {
			z.sumPixels(v.factor, from, to, rgb)
		}
		return w.Out(grid).Send(z.unit)
	})
}

// sumPixels appends the sums of the pixels at from for the grid points to.
func (z *zoomer) sumPixels(factor int, from, to image.Rectangle, rgb []byte) {
	for gy := to.Min.Y; gy < to.Max.Y; gy++ {
		z.sums = append(z.sums[:0], make([]uint16, 3*to.Dx())...)
		for y := max(gy*factor, from.Min.Y); y < min((gy+1)*factor, from.Max.Y); y++ {
			row := rgb[3*from.Dx()*(y-from.Min.Y):][:3*from.Dx()]
			for i := 0; i < len(row); i += 3 {
				gx := (from.Min.X+i/3)/factor - to.Min.X
				sum := z.sums[3*gx : 3*gx+3]
				sum[0] += uint16(row[i])
				sum[1] += uint16(row[i+1])
				sum[2] += uint16(row[i+2])
			}
		}
		for _, s := range z.sums {
			z.unit = binary.BigEndian.AppendUint16(z.unit, s)
		}
	}
}

// A viewer computes the image of a band and passes it to show.
type viewer struct {
	show func(v view, picture *image.NRGBA)
	sums []uint16
}

func (p *viewer) Process(_ context.Context, w *datacutter.Work) error {
	v, err := parseView(w.Query)
	if err != nil {
		return err
	}
	size := v.imageSize()
	p.sums = append(p.sums[:0], make([]uint16, 3*size.X*size.Y)...)
	missing := v.rect.Dx() * v.rect.Dy()
	err = eachUnit(w, grid, func(v view, unit []byte) error {
		n, err := p.addUnit(v, unit)
		missing -= n
		return err
	})
	if err != nil {
		return err
	}
	if missing != 0 {
		return fmt.Errorf("%d of %d pixels missing", missing, v.rect.Dx()*v.rect.Dy())
	}
	picture := image.NewNRGBA(image.Rectangle{Max: size})
	for y := range size.Y {
		for x := range size.X {
			n := v.pixelCount(x, y)
			i := y*size.X + x
			for c := range 3 {
				picture.Pix[4*i+c] = byte((int(p.sums[3*i+c]) + n/2) / n)
			}
			picture.Pix[4*i+3] = 255
		}
	}
	p.show(v, picture)
	return nil
}

// addUnit adds a unit to the sums, and returns the number of its slide pixels.
func (p *viewer) addUnit(v view, unit []byte) (int, error) {
	wide := 2
	if v.factor == 1 {
		wide = 1
	}
	width := v.imageSize().X
	at, n, data, err := parseUnit(unit, image.Rectangle{Max: v.imageSize()}, 3*wide)
	if err != nil {
		return 0, err
	}
	for y := at.Min.Y; y < at.Max.Y; y++ {
		sums := p.sums[3*(y*width+at.Min.X) : 3*(y*width+at.Max.X)]
		for i := range sums {
			if wide == 1 {
				sums[i] += uint16(data[i])
			} else {
				sums[i] += binary.BigEndian.Uint16(data[2*i:])
			}
		}
		data = data[wide*len(sums):]
	}
	return n, nil
}

// errUnit is wrapped by errors of malformed units.
var errUnit = errors.New("bad unit")

// unitHeaderLen is the length of the header of every unit: the position of its pixels,
// and the number of slide pixels that contribute to them.
//
//	x (32)  y (32)  width (16)  height (16)  pixels of the level (32)
//
// Up to clip, x and y are in pixels of the level, from zoom on in pixels of the
// band's image.
const unitHeaderLen = 16

func putUnitHeader(b []byte, at image.Rectangle, pixels int) {
	binary.BigEndian.PutUint32(b, uint32(at.Min.X))
	binary.BigEndian.PutUint32(b[4:], uint32(at.Min.Y))
	binary.BigEndian.PutUint16(b[8:], uint16(at.Dx()))
	binary.BigEndian.PutUint16(b[10:], uint16(at.Dy()))
	binary.BigEndian.PutUint32(b[12:], uint32(pixels))
}

// parseUnit parses a unit and returns an error unless its pixels are within bounds. size is the
// number of bytes of a pixel, or 0 if the data is compressed.
func parseUnit(b []byte, bounds image.Rectangle, size int) (at image.Rectangle, pixels int, data []byte, err error) {
	if len(b) < unitHeaderLen {
		return at, 0, nil, fmt.Errorf("%w: %d bytes, no header", errUnit, len(b))
	}
	x, y := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	w, h := int(binary.BigEndian.Uint16(b[8:])), int(binary.BigEndian.Uint16(b[10:]))
	if x < maxSide && y < maxSide {
		at = image.Rect(int(x), int(y), int(x)+w, int(y)+h)
	}
	data = b[unitHeaderLen:]
	if at.Empty() || !at.In(bounds) || w > maxEdge || h > maxEdge || size > 0 && len(data) != w*h*size {
		return at, 0, nil, fmt.Errorf("%w: %d by %d pixels at (%d, %d) in %v: %d bytes", errUnit, w, h, x, y, bounds, len(data))
	}
	return at, int(binary.BigEndian.Uint32(b[12:])), data, nil
}
