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

// A Spec describes a generated volume: the sum of round blobs at random positions. Equal specs
// yield equal samples on every machine.
type Spec struct {
	Seed  uint64
	Dims  [3]int // samples in x, y and z; 2 to 2^15
	Blobs int
}

// SpecFor returns the largest cube of at most n bytes, with 60 blobs.
func SpecFor(n int64) Spec {
	side := 2
	for s := int64(side + 1); s <= maxSide && s*s*s <= n; s++ {
		side++
	}
	return Spec{Seed: 1, Dims: [3]int{side, side, side}, Blobs: 60}
}

// A blob adds weight * (1 - d^2/radius^2)^2 to samples at a distance d below the radius.
type blob struct {
	at             [3]int
	radius, weight int
}

// makeBlobs returns the blobs of a volume. All arithmetic is integer arithmetic.
func (s Spec) makeBlobs() (list []blob) {
	side := min(s.Dims[0], s.Dims[1], s.Dims[2])
	state := s.Seed
	draw := func(from, below int) int { // splitmix64
		state += 0x9E3779B97F4A7C15
		h := (state ^ state>>30) * 0xBF58476D1CE4E5B9
		h = (h ^ h>>27) * 0x94D049BB133111EB
		return from + int((h^h>>31)>>33)%max(1, below-from)
	}
	for range s.Blobs {
		b := blob{radius: draw(max(1, side/10), max(2, side/4)), weight: draw(100, 220)}
		for i, n := range s.Dims {
			b.at[i] = draw(n/6, n-n/6)
		}
		list = append(list, b)
	}
	return list
}

// Generate writes a volume in the format of Volume. It keeps one plane in memory.
func Generate(w io.Writer, spec Spec) error {
	if err := checkDims(spec.Dims); err != nil {
		return fmt.Errorf("isosurface: Spec: %w", err)
	}
	b := append(make([]byte, 0, headerLen), magic...)
	for _, n := range spec.Dims {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	if _, err := w.Write(append(b, 0, 0, 0, 0)); err != nil {
		return err
	}
	blobs := spec.makeBlobs()
	sums := make([]int32, spec.Dims[0]*spec.Dims[1])
	plane := make([]byte, len(sums))
	for z := range spec.Dims[2] {
		clear(sums)
		for _, b := range blobs {
			b.addToPlane(sums, spec.Dims, z)
		}
		for i, s := range sums {
			plane[i] = byte(min(s, 255))
		}
		if _, err := w.Write(plane); err != nil {
			return err
		}
	}
	return nil
}

// addToPlane adds the blob to plane z.
func (b blob) addToPlane(sums []int32, dims [3]int, z int) {
	rr := b.radius * b.radius
	dz := (z - b.at[2]) * (z - b.at[2])
	for y := max(0, b.at[1]-b.radius); y <= min(dims[1]-1, b.at[1]+b.radius); y++ {
		dyz := dz + (y-b.at[1])*(y-b.at[1])
		if dyz >= rr {
			continue
		}
		row := sums[y*dims[0] : (y+1)*dims[0]]
		for x := max(0, b.at[0]-b.radius); x <= min(dims[0]-1, b.at[0]+b.radius); x++ {
			if d := dyz + (x-b.at[0])*(x-b.at[0]); d < rr {
				near := int32((rr - d) * 256 / rr) // 0 to 256
				row[x] += int32(b.weight) * near * near >> 16
			}
		}
	}
}
