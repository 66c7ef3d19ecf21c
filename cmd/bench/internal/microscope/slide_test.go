package microscope

import (
	"bytes"
	"encoding/binary"
	"image"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/cmd/bench/internal/apptest"
	"github.com/softrnic/softrnic/datacutter"
)

// A file has the painted pixels, level by level and tile by tile.
func TestSlideHoldsWhatWasPainted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		spec := drawSpec(rt)
		s := newSlide(rt, spec)
		require.Equal(rt, image.Rect(0, 0, spec.Width, spec.Height), s.Bounds())
		require.Equal(rt, spec.Levels, s.Levels())
		want := paintLevel(spec)
		for l := range spec.Levels {
			got, err := s.decompressLevel(l)
			require.NoError(rt, err)
			require.Equal(rt, want, got, "level %d", l)
			want = want.halveSize()
		}
	})
}

// An image at full resolution of a slide with one level is the mean of the painted pixels.
func TestReferenceIsTheMean(t *testing.T) {
	spec := Spec{Seed: 3, Width: 50, Height: 40, Tile: 7, Levels: 1}
	painted := paintLevel(spec)
	got, err := Reference(newSlide(t, spec), Query{Region: image.Rect(3, 5, 45, 33), Zoom: 4})
	require.NoError(t, err)
	require.Equal(t, image.Pt(11, 7), got.Rect.Size())
	for y := range 7 {
		for x := range 11 {
			for c := range 3 {
				sum, n := 0, 0
				for yy := 5 + 4*y; yy < min(9+4*y, 33); yy++ {
					for xx := 3 + 4*x; xx < min(7+4*x, 45); xx++ {
						sum += int(painted.pix[3*(50*yy+xx)+c])
						n++
					}
				}
				require.Equal(t, (2*sum+n)/(2*n), int(got.Pix[got.PixOffset(x, y)+c]), "%d, %d", x, y)
			}
		}
	}
}

func TestTileFor(t *testing.T) {
	require.Equal(t, 18, TileFor(1024))
	require.Equal(t, 36, TileFor(4096))
	require.Equal(t, maxEdge, TileFor(1<<24))
	require.Equal(t, 1, TileFor(0))
	require.Equal(t, Spec{Seed: 1, Width: 591, Height: 591, Tile: 18, Levels: 3}, SpecFor(1<<20, 1024))
}

// tileUnit has room for the maximum overhead of zstd on incompressible pixels, for every edge.
func TestTilesFitTheirUnits(t *testing.T) {
	for _, edge := range []int{1, 2, 3, 5, 18, 60, 209, 210} {
		s := newSlide(t, Spec{Seed: 1, Width: edge, Height: edge, Tile: edge, Levels: 1})
		require.LessOrEqual(t, unitHeaderLen+s.longest, tileUnit(edge))
	}
}

func TestSpecs(t *testing.T) {
	ok := Spec{Width: 1, Height: 1, Tile: 1, Levels: 1}
	require.NoError(t, Generate(new(bytes.Buffer), ok))
	for says, change := range map[string]func(*Spec){
		"Width 0":        func(s *Spec) { s.Width = 0 },
		"Height 1048577": func(s *Spec) { s.Height = 1<<20 + 1 },
		"Tile 1025":      func(s *Spec) { s.Tile = 1025 },
		"Levels -1":      func(s *Spec) { s.Levels = -1 },
	} {
		s := ok
		change(&s)
		require.ErrorContains(t, Generate(new(bytes.Buffer), s), says)
	}
}

func slideFile(t testing.TB) []byte {
	var b bytes.Buffer
	require.NoError(t, Generate(&b, Spec{Width: 30, Height: 20, Tile: 8, Levels: 2}))
	return b.Bytes()
}

func open(b []byte) (*Slide, error) { return Open(bytes.NewReader(b), int64(len(b))) }

func TestFilesThatAreNoSlides(t *testing.T) {
	good := slideFile(t)
	trailer := len(good) - trailerLen
	field := func(at int, v uint16) func(b []byte) []byte {
		return func(b []byte) []byte {
			binary.BigEndian.PutUint16(b[trailer+at:], v)
			return b
		}
	}
	for says, change := range map[string]func(b []byte) []byte{
		"23 bytes: no trailer": func(b []byte) []byte { return b[:23] },
		"bad magic in trailer": field(0, 0),
		"bad magic":            field(22, 1),
		"Width 0":              field(10, 0),
		"Width 1048577":        field(8, 1<<15),
		"Levels 17":            field(18, 17),
		"Tile 1025":            field(16, 1025),
		"32784 tiles in ":      field(8, 1), // 65566 pixels wide: 8196 * 3 + 4098 * 2
		"tiles of 4294":        field(-4, 1<<16-1),
		"bytes, want":          func(b []byte) []byte { return b[1:] },
	} {
		_, err := open(change(slices.Clone(good)))
		require.ErrorIs(t, err, ErrSlide, says)
		require.ErrorContains(t, err, says)
	}
	_, err := open(good)
	require.NoError(t, err)
}

// A corrupt tile ends the run with an error that names the filter.
func TestBadTiles(t *testing.T) {
	for says, change := range map[string]func(b []byte){
		": tile (0,0)-(8,8): invalid input: magic number mismatch": func(b []byte) { clear(b[:4]) },
		": tile (": func(b []byte) { b[len(b)/4] ^= 0xFF },
	} {
		b := slideFile(t)
		change(b)
		s, err := open(b)
		require.NoError(t, err)
		_, _, err = Run(apptest.TimeoutContext(t), datacutter.NewMemory(), Options{Slide: s})
		require.ErrorContains(t, err, "datacutter: decompress[0] of group ")
		require.ErrorContains(t, err, says)
		_, err = Reference(s, Query{s.Bounds(), 1})
		require.ErrorIs(t, err, ErrSlide)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(slideFile(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := open(b)
		if err != nil {
			require.ErrorIs(t, err, ErrSlide)
			return
		}
		for l := range s.Levels() {
			grid := s.tileGrid(l)
			require.Len(t, s.offsets[l], grid.X*grid.Y+1)
			_, err := s.appendTile(nil, l, grid.X-1, grid.Y-1)
			require.NoError(t, err)
		}
	})
}

func FuzzPiece(f *testing.F) {
	b := make([]byte, unitHeaderLen+6)
	putUnitHeader(b, image.Rect(1, 2, 3, 3), 6)
	f.Add(b, 4, 4, 3)
	f.Fuzz(func(t *testing.T, b []byte, width, height, size int) {
		bounds := image.Rect(0, 0, min(max(width, 0), maxSide), min(max(height, 0), maxSide))
		at, n, data, err := parseUnit(b, bounds, min(max(size, 0), 6))
		if err != nil {
			require.ErrorIs(t, err, errUnit)
			return
		}
		require.True(t, at.In(bounds))
		require.False(t, at.Empty())
		again := make([]byte, unitHeaderLen)
		putUnitHeader(again, at, n)
		require.Equal(t, b, append(again, data...))
	})
}
