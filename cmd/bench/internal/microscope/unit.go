package microscope

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
)

// errUnit is wrapped by what is wrong with a unit.
var errUnit = errors.New("bad unit")

// unitHeaderLen is the length of what every unit begins with: where its pixels are,
// and of how many of the slide they are made.
//
//	x (32)  y (32)  width (16)  height (16)  pixels of the level (32)
//
// Up to clip, x and y are in pixels of the level, from zoom on in those of the
// band's picture.
const unitHeaderLen = 16

func putUnitHeader(b []byte, at image.Rectangle, pixels int) {
	binary.BigEndian.PutUint32(b, uint32(at.Min.X))
	binary.BigEndian.PutUint32(b[4:], uint32(at.Min.Y))
	binary.BigEndian.PutUint16(b[8:], uint16(at.Dx()))
	binary.BigEndian.PutUint16(b[10:], uint16(at.Dy()))
	binary.BigEndian.PutUint32(b[12:], uint32(pixels))
}

// parseUnit reads what putPiece wrote; the piece lies within the bounds. size
// is how many bytes each pixel has, or 0 if they are compressed.
func parseUnit(b []byte, bounds image.Rectangle, size int) (at image.Rectangle, pixels int, data []byte, err error) {
	if len(b) < unitHeaderLen {
		return at, 0, nil, fmt.Errorf("%w: of %d bytes", errUnit, len(b))
	}
	x, y := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	w, h := int(binary.BigEndian.Uint16(b[8:])), int(binary.BigEndian.Uint16(b[10:]))
	if x < maxSide && y < maxSide {
		at = image.Rect(int(x), int(y), int(x)+w, int(y)+h)
	}
	data = b[unitHeaderLen:]
	if at.Empty() || !at.In(bounds) || w > maxEdge || h > maxEdge || size > 0 && len(data) != w*h*size {
		return at, 0, nil, fmt.Errorf("%w: %d by %d pixels at (%d, %d) of %v, in %d bytes", errUnit, w, h, x, y, bounds, len(data))
	}
	return at, int(binary.BigEndian.Uint32(b[12:])), data, nil
}
