package microscope

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
)

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
