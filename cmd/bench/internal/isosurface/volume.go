package isosurface

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrVolume is wrapped by errors of malformed volume files.
var ErrVolume = errors.New("isosurface: bad volume")

// A Volume is a field of samples on a regular grid, one byte each. The file has a
// header and the samples, x running fastest, z slowest:
//
//	"DCVOLUM1"  samples in x (32)  in y (32)  in z (32)  0 (32)
//
// Integers are big-endian.
type Volume struct {
	file io.ReaderAt
	dims [3]int
}

const (
	magic     = "DCVOLUM1"
	headerLen = 24
	maxSide   = 1 << 15
)

// Open parses the header of a volume. The volume keeps using file.
func Open(file io.ReaderAt, size int64) (*Volume, error) {
	b := make([]byte, headerLen)
	if _, err := file.ReadAt(b, 0); size < headerLen || err != nil {
		return nil, fmt.Errorf("%w: file of %d bytes: no header", ErrVolume, size)
	}
	if string(b[:8]) != magic || binary.BigEndian.Uint32(b[20:]) != 0 {
		return nil, fmt.Errorf("%w: bad magic in header", ErrVolume)
	}
	v := &Volume{file: file}
	n := int64(1)
	for i := range v.dims {
		v.dims[i] = int(min(binary.BigEndian.Uint32(b[8+4*i:]), maxSide+1))
		n *= int64(v.dims[i])
	}
	if err := checkDims(v.dims); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVolume, err)
	}
	if n != size-headerLen {
		return nil, fmt.Errorf("%w: %v samples in %d bytes", ErrVolume, v.dims, size-headerLen)
	}
	return v, nil
}

func checkDims(dims [3]int) error {
	for _, n := range dims {
		if n < 2 || n > maxSide {
			return fmt.Errorf("%v samples: want 2 to %d in each direction", dims, maxSide)
		}
	}
	return nil
}

// NewVolume generates a volume in memory.
func NewVolume(spec Spec) (*Volume, error) {
	var b bytes.Buffer
	if err := Generate(&b, spec); err != nil {
		return nil, err
	}
	return Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
}

// Dims returns the number of samples in x, y and z.
func (v *Volume) Dims() [3]int { return v.dims }

// cellCounts returns the number of cells in x, y and z.
func (v *Volume) cellCounts() [3]int { return [3]int{v.dims[0] - 1, v.dims[1] - 1, v.dims[2] - 1} }

// readPlane reads the samples of plane z. Beyond the edge it reads the plane at the edge.
func (v *Volume) readPlane(to []byte, z int) error {
	n := v.dims[0] * v.dims[1]
	z = min(max(z, 0), v.dims[2]-1)
	if _, err := v.file.ReadAt(to[:n], headerLen+int64(z)*int64(n)); err != nil {
		return fmt.Errorf("isosurface: read plane %d: %w", z, err)
	}
	return nil
}
