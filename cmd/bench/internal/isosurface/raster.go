package isosurface

import (
	"image"
	"math"
)

// A pixel is the visible surface at one position: the depth in the high bits, the colour in the
// low 24. The smaller of two pixels is the nearer one. Of two pixels at the same depth the
// smaller one wins, so that the image does not depend on the drawing order.
type pixel uint64

// background is a pixel behind all others.
const background = pixel(math.MaxUint64)

// pixelLen is the encoded length of a pixel in bytes.
const pixelLen = 6

// drawTriangle calls f with every run of pixels of a triangle, from top to bottom. f must not
// keep the slice. A pixel whose centre is on an edge belongs to both adjacent triangles.
func (r *rasterizer) drawTriangle(t *[3]point, f func(x, y int, run []pixel) error) error {
	a, b, c := &t[0], &t[1], &t[2]
	area := (b.x-a.x)*(c.y-a.y) - (b.y-a.y)*(c.x-a.x)
	if area == 0 {
		return nil
	}
	if area < 0 {
		b, c, area = c, b, -area
	}
	left, right := r.pixelSpan(min(a.x, b.x, c.x), max(a.x, b.x, c.x))
	top, bottom := r.pixelSpan(min(a.y, b.y, c.y), max(a.y, b.y, c.y))
	for y := top; y <= bottom; y++ {
		r.run = r.run[:0]
		start := left
		py := y*subpixel + subpixel/2
		for x := left; x <= right; x++ {
			px := x*subpixel + subpixel/2
			// Twice the areas of the triangles with the centre. They sum up to area, and are
			// the weights of the opposite corners.
			wa := (c.x-b.x)*(py-b.y) - (c.y-b.y)*(px-b.x)
			wb := (a.x-c.x)*(py-c.y) - (a.y-c.y)*(px-c.x)
			wc := area - wa - wb
			if wa < 0 || wb < 0 || wc < 0 {
				if len(r.run) > 0 {
					break // a triangle has no gaps
				}
				start = x + 1
				continue
			}
			p := pixel((wa*a.depth + wb*b.depth + wc*c.depth) / area)
			for i := range a.color {
				p = p<<8 | pixel((wa*a.color[i]+wb*b.color[i]+wc*c.color[i])/area)
			}
			r.run = append(r.run, p)
		}
		if len(r.run) > 0 {
			if err := f(int(start), int(y), r.run); err != nil {
				return err
			}
		}
	}
	return nil
}

// A rasterizer draws triangles into an image of a given size.
type rasterizer struct {
	size int64
	run  []pixel
}

// pixelSpan returns the first and the last pixel whose centres may be between two positions.
func (r *rasterizer) pixelSpan(from, to int64) (first, last int64) {
	return max(0, floorDiv(from, subpixel)), min(r.size-1, floorDiv(to, subpixel))
}

// A frame is an image with depths.
type frame struct {
	size   int
	pixels []pixel
}

func newFrame(size int) *frame {
	f := &frame{size: size, pixels: make([]pixel, size*size)}
	f.clearPixels()
	return f
}

func (f *frame) clearPixels() {
	for i := range f.pixels {
		f.pixels[i] = background
	}
}

// mergeRun merges a run of pixels.
func (f *frame) mergeRun(x, y int, run []pixel) {
	to := f.pixels[y*f.size+x:][:len(run)]
	for i, p := range run {
		to[i] = min(to[i], p)
	}
}

// mergeFrame merges a frame of the same size.
func (f *frame) mergeFrame(other *frame) { f.mergeRun(0, 0, other.pixels) }

// toImage returns the frame on a dark background.
func (f *frame) toImage() *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, f.size, f.size))
	for i, p := range f.pixels {
		to := img.Pix[4*i : 4*i+4]
		if p == background {
			p = 0x16181D
		}
		to[0], to[1], to[2], to[3] = byte(p>>16), byte(p>>8), byte(p), 255
	}
	return img
}
