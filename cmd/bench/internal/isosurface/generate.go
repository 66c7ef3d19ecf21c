package isosurface

import (
	"encoding/binary"
	"fmt"
	"io"
)

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
