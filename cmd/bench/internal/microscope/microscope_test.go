package microscope

import (
	"fmt"
	"image"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/cmd/bench/internal/apptest"
	"github.com/softrnic/softrnic/datacutter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSlide(t require.TestingT, spec Spec) *Slide {
	s, err := NewSlide(spec)
	require.NoError(t, err)
	return s
}

// Images of slides of several sizes: checksums of their pixels, because the bytes of a PNG may
// change with Go. The smallest is also in testdata.
func TestGoldenPictures(t *testing.T) {
	for _, c := range []struct {
		bytes    int64
		unitSize int
		zoom     int
		size     image.Point
		sum      string // the first 8 bytes of SHA-256
	}{
		{64 << 10, 1024, 1, image.Pt(147, 147), "7242d82c29d939d2"},
		{128 << 10, 1024, 3, image.Pt(70, 70), "efa9ad897eae72ad"},
		{256 << 10, 1024, 4, image.Pt(74, 74), "0a3b2282dd971646"},
		{256 << 10, 4096, 6, image.Pt(50, 50), "81203ac9497d70ea"},
	} {
		name := fmt.Sprintf("%d bytes, units of %d, zoom %d", c.bytes, c.unitSize, c.zoom)
		s := newSlide(t, SpecFor(c.bytes, c.unitSize))
		q := Query{Region: s.Bounds(), Zoom: c.zoom}
		want, err := Reference(s, q)
		require.NoError(t, err)
		require.Equal(t, c.size, want.Rect.Size(), name)
		require.Equal(t, c.sum, apptest.Checksum(want), name)
		if c.zoom == 1 {
			apptest.CompareGolden(t, "testdata/slide.png", want)
		}
		got, report, err := Run(apptest.TimeoutContext(t), datacutter.NewTCP(""), Options{Slide: s, Query: q, UnitSize: c.unitSize})
		require.NoError(t, err)
		require.Equal(t, apptest.EncodePNG(t, want), apptest.EncodePNG(t, got), name)
		require.Len(t, report.Instances, 25, "the paper's five groups of five filters")
		require.Positive(t, report.Elapsed())
	}
}

// For any slide, query, layout, policy and unit size, the image equals the reference.
func TestAnyRunGivesTheReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSlide(rt, drawSpec(rt))
		o := Options{Slide: s, Query: drawQuery(rt, s)}
		o.UnitSize = tileUnit(s.edge) + rapid.IntRange(0, 100).Draw(rt, "spare bytes")
		o.Works = rapid.IntRange(0, 12).Draw(rt, "works")
		o.Policy = datacutter.Policy(rapid.IntRange(0, 1).Draw(rt, "policy"))
		for g := range rapid.IntRange(1, 2).Draw(rt, "groups") {
			for _, f := range []string{"read", "decompress", "clip", "zoom", "view"} {
				p := datacutter.Placement{Group: g, Filter: f, Host: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "host")}
				if f != "view" {
					p.Copies = rapid.IntRange(1, 3).Draw(rt, "copies")
				}
				o.Layout = append(o.Layout, p)
			}
		}
		want, err := Reference(s, o.Query)
		if err != nil {
			require.ErrorIs(rt, err, ErrQuery)
			_, err = New(o)
			require.ErrorIs(rt, err, ErrQuery)
			return
		}
		got, _, err := Run(apptest.TimeoutContext(t), datacutter.NewMemory(), o)
		require.NoError(rt, err)
		require.Equal(rt, want, got)
	})
}

func drawSpec(rt *rapid.T) Spec {
	return Spec{
		Seed:  rapid.Uint64().Draw(rt, "seed"),
		Width: rapid.IntRange(1, 120).Draw(rt, "width"), Height: rapid.IntRange(1, 120).Draw(rt, "height"),
		Tile: rapid.IntRange(1, 40).Draw(rt, "tile"), Levels: rapid.IntRange(1, 5).Draw(rt, "levels"),
	}
}

func drawQuery(rt *rapid.T, s *Slide) Query {
	x, y := rapid.IntRange(-5, s.width-1).Draw(rt, "x"), rapid.IntRange(-5, s.height-1).Draw(rt, "y")
	if rapid.Bool().Draw(rt, "even") { // allows higher levels
		x, y = x&^15, y&^15
	}
	w, h := rapid.IntRange(1, s.width+5).Draw(rt, "w"), rapid.IntRange(1, s.height+5).Draw(rt, "h")
	return Query{Region: image.Rect(x, y, x+w, y+h), Zoom: rapid.OneOf(rapid.IntRange(1, 20), rapid.SampledFrom([]int{32, 64, 128})).Draw(rt, "zoom")}
}

// Every host has its own App, as in separate processes. The first has the image.
func TestHostsOfTheirOwn(t *testing.T) {
	s := newSlide(t, SpecFor(64<<10, 1024))
	hosts := []string{"a", "b", "c"}
	apps, jobs := make([]*App, 3), make([]datacutter.Job, 3)
	for i := range hosts {
		var err error
		apps[i], err = New(Options{Slide: s, Hosts: hosts})
		require.NoError(t, err)
		jobs[i] = apps[i].Job()
	}
	require.NoError(t, apptest.RunOnHosts(apptest.TimeoutContext(t), hosts, jobs))
	want, err := Reference(s, Query{s.Bounds(), 3})
	require.NoError(t, err)
	got, err := apps[0].Picture()
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = apps[1].Picture()
	require.ErrorContains(t, err, "5 of 5 bands missing in this process")
}

func TestOptionsThatCannotRun(t *testing.T) {
	s := newSlide(t, Spec{Width: 100, Height: 100, Tile: 18, Levels: 1})
	_, err := New(Options{Slide: s, UnitSize: 1000})
	require.ErrorContains(t, err, "units of 1000 bytes: too small for tiles of 18 by 18 pixels; use units of 1020 bytes, or a slide with tiles of 17")
	_, err = New(Options{Slide: s, Query: Query{Region: image.Rect(100, 0, 200, 100), Zoom: 1}})
	require.ErrorIs(t, err, ErrQuery)
	_, err = New(Options{Slide: s, Query: Query{Region: s.Bounds(), Zoom: 17}})
	require.ErrorContains(t, err, "zoom 17: 17 times that of level 0, want at most 16")
	_, err = New(Options{Slide: s, Query: Query{Region: s.Bounds(), Zoom: -1}})
	require.ErrorIs(t, err, ErrQuery)

	a, err := New(Options{Slide: s})
	require.NoError(t, err)
	l := datacutter.Spread(a.Job().Group, 1, "a")
	l[4].Copies = 2
	_, _, err = Run(apptest.TimeoutContext(t), datacutter.NewMemory(), Options{Slide: s, Layout: l})
	require.ErrorContains(t, err, "filter view with several copies")
}

func BenchmarkRun(b *testing.B) {
	s := newSlide(b, SpecFor(3<<20, 1024))
	for name, network := range map[string]datacutter.Network{"memory": datacutter.NewMemory(), "tcp": datacutter.NewTCP("")} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(3 << 20)
			for b.Loop() {
				_, _, err := Run(b.Context(), network, Options{Slide: s})
				require.NoError(b, err)
			}
		})
	}
	b.Run("reference", func(b *testing.B) {
		b.SetBytes(3 << 20)
		for b.Loop() {
			_, err := Reference(s, Query{s.Bounds(), 3})
			require.NoError(b, err)
		}
	})
}
